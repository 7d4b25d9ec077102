"use strict";
// What makes a page live. Everything works without it, only not live.
// A region (`data-region`) is fetched again when one of its topics has changed.
(() => {
  const root = document.documentElement;
  const stored = (key, value) => {
    try {
      return value === undefined ? localStorage.getItem(key) : localStorage.setItem(key, value);
    } catch {
      return null; // nothing is kept where the browser forbids it
    }
  };
  const theme = stored("theme");
  if (theme) root.dataset.theme = theme;

  // The one sink: HTML that our own server has escaped.
  const policy = window.trustedTypes?.createPolicy("headway", { createHTML: (text) => text });
  const parse = (text) => {
    const made = document.createElement("template");
    made.innerHTML = policy ? policy.createHTML(text) : text;
    return made.content;
  };

  const MINUTE = 60, HOUR = 3600, DAY = 86400;
  const span = (s) => {
    s = Math.max(0, Math.floor(s));
    const parts = s < MINUTE ? [[s, "s"]]
      : s < HOUR ? [[s / MINUTE, "m"], [s % MINUTE, "s"]]
      : s < DAY ? [[s / HOUR, "h"], [(s % HOUR) / MINUTE, "m"]]
      : [[s / DAY, "d"], [(s % DAY) / HOUR, "h"]];
    return parts.map(([n, unit]) => [Math.floor(n), unit]).filter(([n], i) => n || !i)
      .map(([n, unit]) => n + unit).join(" ");
  };

  // A button that decides carries the revision of what its reader saw. Once a region brings another
  // one, it keeps the first: pressed, it is refused, and leads to what there is now.
  const seen = new Map();
  const keepSeen = () => {
    for (const each of document.querySelectorAll("button[name=revision]")) {
      const act = each.getAttribute("formaction");
      if (!seen.has(act)) seen.set(act, each.value);
      if (seen.get(act) === each.value) continue;
      each.value = seen.get(act);
      each.textContent = "Changed: look again";
    }
  };

  // Let `now` become like `then`, and touch nothing that is alike: so focus, selection, open
  // details, ticks and scroll positions stay.
  const morph = (now, then) => {
    const known = new Map();
    for (const each of now.children) if (each.id) known.set(each.id, each);
    let at = now.firstChild;
    for (const wanted of [...then.childNodes]) {
      let found = wanted.id ? known.get(wanted.id) : at;
      const alike = found && found.nodeType === wanted.nodeType && found.nodeName === wanted.nodeName
        && (found.id || "") === (wanted.id || "");
      if (!alike) {
        now.insertBefore(wanted, at);
        continue;
      }
      if (found !== at) now.insertBefore(found, at);
      else at = at.nextSibling;
      if (found.nodeType === Node.TEXT_NODE) {
        if (found.data !== wanted.data) found.data = wanted.data;
      } else if (found.nodeType === Node.ELEMENT_NODE && !found.isEqualNode(wanted)) {
        attributes(found, wanted);
        if (!("keep" in found.dataset)) morph(found, wanted);
      }
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  };
  const KEPT = new Set(["open", "checked"]);
  const attributes = (now, then) => {
    for (const { name, value } of [...then.attributes])
      if (now.getAttribute(name) !== value) now.setAttribute(name, value);
    for (const { name } of [...now.attributes])
      if (!then.hasAttribute(name) && !KEPT.has(name) && !(name === "class" && now.className === "at"))
        now.removeAttribute(name);
  };

  document.addEventListener("DOMContentLoaded", () => {
    const said = document.getElementById("link");
    const tell = (text) => {
      if (!said) return;
      said.hidden = !text;
      said.textContent = text;
    };
    const regions = [...document.querySelectorAll("[data-region]")].map((place) => ({
      place,
      topics: new Set((place.dataset.topics || "").split(" ")),
      every: Number(place.dataset.every || 0) * 1000,
      dirty: false, busy: false, at: performance.now(), cost: 0,
    }));
    const EVERY = 500;

    const refresh = async (region) => {
      if (region.busy || document.hidden) return;
      // What takes long is fetched more rarely: a large graph leaves time for its reader.
      const wait = region.at + Math.min(5000, Math.max(EVERY, 3 * region.cost)) - performance.now();
      if (wait > 0) {
        region.timer ??= setTimeout(() => { region.timer = undefined; refresh(region); }, wait);
        return;
      }
      region.dirty = false;
      region.busy = true;
      region.at = performance.now();
      try {
        const where = new URL(location.href);
        where.hash = "";
        where.searchParams.delete("said");
        where.searchParams.set("region", region.place.id);
        const answer = await fetch(where, { headers: { Accept: "text/html" }, cache: "no-store" });
        if (answer.status === 401) return signedOut();
        if (answer.ok) {
          const made = document.createElement("div");
          made.append(parse(await answer.text()));
          morph(region.place, made);
          keepSeen();
          marked();
          bare();
          tick();
          region.cost = performance.now() - region.at;
        }
      } catch {
        region.dirty = true; // the stream says when the server is there again
      } finally {
        region.busy = false;
        if (region.dirty && navigator.onLine) setTimeout(() => refresh(region), EVERY);
      }
    };
    const touch = (fits) => {
      for (const region of regions)
        if (fits(region)) {
          region.dirty = true;
          refresh(region);
        }
    };

    // -- the stream
    let stream, waits, out = false;
    const output = document.getElementById("output");
    const follow = document.getElementById("follow");
    let place = output?.dataset.log;
    const signedOut = () => {
      out = true;
      stream?.close();
      tell("signed out: run `headway web login` and open its link");
    };
    const listen = () => {
      if (out || document.hidden || !document.body.dataset.live) return;
      stream?.close();
      const query = place && follow?.checked ? `?log=${encodeURIComponent(place)}` : "";
      stream = new EventSource(document.body.dataset.live + query);
      let first = true;
      stream.addEventListener("hello", (event) => {
        tell("");
        if (JSON.parse(event.data).missed || !first || missed) touch(() => true);
        first = missed = false;
      });
      stream.addEventListener("news", (event) => {
        const news = JSON.parse(event.data);
        const words = new Set([...news.topics, ...news.jobs]);
        touch((region) => [...region.topics].some((topic) => words.has(topic) || (news.more && topic.startsWith("job-"))));
      });
      stream.addEventListener("log", (event) => {
        const piece = JSON.parse(event.data);
        place = piece.place;
        if (!output.dataset.stream || output.dataset.stream === piece.stream) write(piece);
      });
      stream.addEventListener("next", (event) => {
        write({ html: "", skipped: 0, note: `— goes on in ${JSON.parse(event.data).job} —\n` });
      });
      stream.addEventListener("end", () => { place = undefined; });
      const own = stream;
      const lost = async () => {
        if (own !== stream || own.readyState === EventSource.OPEN) return;
        tell("not connected; trying again");
        if (own.readyState !== EventSource.CLOSED) return;
        try {
          const answer = await fetch("/api/v1/me", { cache: "no-store" });
          if (answer.status === 401) return signedOut();
        } catch { /* it is away still */ }
        setTimeout(listen, 1000);
      };
      // A page that is left loses its stream, too: nobody has to read that.
      stream.onerror = () => {
        missed = true;
        clearTimeout(waits);
        waits = setTimeout(lost, 500);
      };
    };
    let missed = false;
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) {
        missed = true;
        stream?.close();
      } else listen();
    });
    window.addEventListener("pagehide", () => stream?.close());
    window.addEventListener("pageshow", (event) => { if (event.persisted) { missed = true; listen(); } });

    // -- a followed log
    const MOST = 6000;
    const write = (piece) => {
      const atEnd = output.scrollHeight - output.scrollTop - output.clientHeight < 40;
      const made = document.createElement("span");
      if (piece.stream === "stderr") made.className = "err";
      if (piece.note) made.append(piece.note);
      if (piece.skipped) made.append(`— ${piece.skipped} bytes are left out —\n`);
      made.append(parse(piece.html));
      output.append(made);
      while (output.childNodes.length > MOST) output.firstChild.remove();
      if (atEnd && follow?.checked) output.scrollTop = output.scrollHeight;
    };
    if (output) {
      output.scrollTop = output.scrollHeight;
      if (place && follow) {
        follow.parentElement.hidden = false;
        follow.addEventListener("change", listen);
      }
    }

    // -- time goes on
    const tick = () => {
      const now = Date.now() / 1000;
      for (const each of document.querySelectorAll("time[data-tick]")) {
        const passed = now - Date.parse(each.dateTime) / 1000;
        const text = each.dataset.tick === "since" ? span(passed)
          : passed < -1 ? `in ${span(-passed)}` : `${span(passed)} ago`;
        if (each.textContent !== text) each.textContent = text;
      }
      for (const region of regions)
        if (region.every && performance.now() - region.at > region.every) refresh(region);
    };
    setInterval(() => { if (!document.hidden) tick(); }, 1000);

    // -- keys: all of them are links and buttons, too
    let after = "", at = null;
    const rows = () => [...document.querySelectorAll("main .rows tbody tr, main [data-row]")];
    const marked = () => {
      if (!at) return;
      const found = document.getElementById(at);
      if (found) found.classList.add("at");
      else at = null;
    };
    const go = (step) => {
      const all = rows();
      if (!all.length) return;
      const index = all.findIndex((each) => each.id === at);
      const next = all[Math.min(all.length - 1, Math.max(0, index + step))] || all[0];
      document.querySelector(".at")?.classList.remove("at");
      at = next.id;
      next.classList.add("at");
      (next.querySelector("a.job") || next.querySelector("a,button"))?.focus({ preventScroll: true });
      next.scrollIntoView({ block: "nearest" });
    };
    document.addEventListener("keydown", (event) => {
      const typing = event.target.closest("input:not([type=checkbox]),textarea,select");
      if (event.ctrlKey || event.metaKey || event.altKey || typing) return;
      const link = after === "g" && document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
      after = "";
      if (link) link.click();
      else if (event.key === "g") after = "g";
      else if (event.key === "j") go(1);
      else if (event.key === "k") go(-1);
      else if (event.key === "/") (document.getElementById("find") || document.querySelector("nav a[data-key=j]"))?.focus();
      else if (event.key === "x" && at) document.querySelector(`#${CSS.escape(at)} input[type=checkbox]`)?.click();
      else if (event.key === "a") (document.querySelector(".at .go") || document.querySelector("[data-approve]"))?.focus();
      else if (event.key === "?") location.hash = "keys";
      else return;
      event.preventDefault();
    });
    document.addEventListener("click", (event) => {
      const box = event.target.closest?.("[data-graph] [data-job]");
      if (box && /^job-\d+$/.test(box.dataset.job)) location.href = `/ui/jobs/${box.dataset.job}`;
      if (!event.target.matches("[data-tick-all]")) return;
      const boxes = [...document.querySelectorAll("input[name=job]")];
      const all = boxes.every((each) => each.checked);
      for (const each of boxes) each.checked = !all;
    });
    const bare = () => { for (const each of document.querySelectorAll("[data-tick-all]")) each.hidden = false; };
    bare();
    const button = document.getElementById("theme");
    if (button) {
      button.hidden = false;
      button.addEventListener("click", () => {
        const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
        root.dataset.theme = dark ? "light" : "dark";
        stored("theme", root.dataset.theme);
      });
    }
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
    const notice = document.querySelector(".said");
    if (notice) { // it tells of the last click alone, not of what is so later
      const here = new URL(location.href);
      here.searchParams.delete("said");
      history.replaceState(null, "", here);
      setTimeout(() => notice.remove(), 10000);
    }
    keepSeen();
    tick();
    listen();
  });
})();
