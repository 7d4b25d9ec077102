"""`headway serve` as a process: where it listens, how it begins, how it ends, what it logs."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served import bearer, on_both_stores
from wire import Frame, Heard, Wire

import warm
from harness import Site, wait_for
from headway.base.home import Home
from headway.web.place import host_name_of, place_of
from headway.web.server import (
    LINES_OF_NOBODY,
    MINUTE,
    FewOfNobody,
    JsonLines,
    Listen,
    Server,
)

DEADLINE = 30.0


class Process:
    """A server that has begun to listen."""

    def __init__(self, site: Site, *arguments: str, env: dict[str, str] | None = None) -> None:
        self.site = site
        self.log = site.folder / "serve.log"
        with open(self.log, "ab") as log:
            self.process = warm.start(
                [],
                ["serve", "--json", *arguments],
                cwd=site.folder,
                env={**site.env, **(env or {})},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        line = self.process.stdout.readline() if self.process.stdout else ""
        assert line, self.log.read_text()
        self.place = json.loads(line)

    @property
    def port(self) -> int:
        return int(self.place["url"].rpartition(":")[2])

    def wire(self, host: str = "127.0.0.1") -> Wire:
        return Wire(self.place["socket"] or (host, self.port))

    def ask(self, method: str, path: str, token: str = "", body: Any = None) -> Heard:
        with self.wire() as wire:
            return wire.ask(method, path, bearer(token) if token else (), body)

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        code = self.process.wait(DEADLINE)
        if self.process.stdout:
            self.process.stdout.close()
        return code

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, config="[worker]\nautostart = false\n")
    yield made
    made.close()


@pytest.fixture
def start(site: Site) -> Iterator[Callable[..., Process]]:
    made: list[Process] = []

    def begin(*arguments: str, **options: Any) -> Process:
        made.append(Process(options.pop("site", site), *arguments, **options))
        return made[-1]

    yield begin
    for each in made:
        each.end(signal.SIGKILL)


def free_port() -> int:
    """One that is free on both addresses."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def refused(site: Site, *arguments: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    done = site.run("serve", *arguments, env=env, check=False)
    return done.returncode, done.stderr


# -- who comes by a proxy ----------------------------------------------------------------------


def test_a_browser_behind_a_proxy_is_signed_in_under_its_name(
    site: Site, start: Callable[..., Process]
) -> None:
    origin = "https://jobs.example.org"
    config = Path(site.home.path) / "config.toml"
    config.write_text(
        f'[worker]\nautostart = false\n[web]\norigins = ["{origin}"]\n', encoding="utf-8"
    )
    server = start("--unix")
    refused = site.run("web", "login", "--origin", "https://evil.example", check=False)
    assert refused.returncode == 5 and origin in refused.stderr
    link = site.run("web", "login", "--origin", origin).stdout.strip()
    assert link.startswith(f"{origin}/login#")
    with Wire(server.place["socket"], host="jobs.example.org") as wire:
        sent = {"code": link.partition("#")[2]}
        heard = wire.ask("POST", "/login", [("Origin", origin)], sent)
    assert heard.status == 303 and heard.header("set-cookie").startswith("__Host-")


# -- where -------------------------------------------------------------------------------------


def test_it_listens_on_both_addresses_with_one_port(site: Site, start: Any) -> None:
    port = free_port()
    serving = start("--port", str(port))
    assert (
        serving.port == port and serving.place["url"] == f"http://{host_name_of(site.home)}:{port}"
    )
    with serving.wire() as four, serving.wire("::1") as six:
        assert four.ask("GET", "/healthz").status == six.ask("GET", "/healthz").status == 200
    found = place_of(site.home)
    assert found is not None and (found.port, found.pid) == (port, serving.process.pid)
    assert os.stat(os.path.join(site.home.run, "web.json")).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_port_that_is_taken_on_one_address_is_taken(site: Site, address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as other:
        port = other.getsockname()[1]
        code, said = refused(site, "--port", str(port))
    assert code == 4 and f"port {port} is taken" in said
    assert place_of(site.home) is None


def test_without_a_port_the_next_that_is_free_is_taken(start: Any, tmp_path_factory: Any) -> None:
    """Every home has a server of its own."""
    other = Site(tmp_path_factory.mktemp("other"), config="[worker]\nautostart = false\n")
    try:
        first, second = start(), start(site=other)
        assert first.port != second.port
        assert {first.port, second.port} <= set(range(7433, 7453))
        second.end()
    finally:
        other.close()


def test_a_second_server_of_a_home_says_where_the_first_is(site: Site, start: Any) -> None:
    first = start("--port", str(free_port()))
    code, said = refused(site, "--port", str(free_port()))
    assert code == 4 and first.place["url"] in said
    assert first.ask("GET", "/healthz").status == 200


def test_who_asks_for_a_server_turns_away_none_that_begins(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`headway web login` asks, perhaps while `headway serve` comes up."""
    server, close, begun = Server(site.client, lambda: site.client, Listen(port=0)), os.close, []
    server._take_lock()
    server._lock.close()  # its file stays

    def begin_before_it_lets_go(descriptor: int) -> None:
        if not begun:
            begun.append(True)
            server._take_lock()
        close(descriptor)

    monkeypatch.setattr(os, "close", begin_before_it_lets_go)
    assert place_of(site.home) is None
    assert begun
    server._lock.close()


@pytest.mark.parametrize("port", ["70000", "-1", "x"])
def test_what_is_no_port_is_refused(site: Site, port: str) -> None:
    code, said = refused(site, "--port", port)
    assert code in (2, 5) and "Traceback" not in said and port in said


def test_another_address_is_for_others_only_if_that_is_said(site: Site) -> None:
    assert refused(site, "--host", "0.0.0.0")[0] == 5
    code, said = refused(site, "--host", "0.0.0.0", "--allow-remote")
    assert code == 5 and "web.origins" in said
    assert place_of(site.home) is None


def test_over_a_socket_it_listens_on_no_port(site: Site, start: Any) -> None:
    serving = start("--unix")
    path = os.path.join(site.home.run, "web.sock")
    assert serving.place["socket"] == path and serving.place["url"] is None
    assert os.stat(path).st_mode & 0o777 == 0o600
    me = serving.ask("GET", "/api/v1/me")
    assert me.status == 200 and me.json["role"] == "operate"
    refused = site.run("web", "login", check=False)
    assert refused.returncode == 3 and f"listens on {path} alone" in refused.stderr
    assert serving.end() == 0
    assert start("--unix").ask("GET", "/healthz").status == 200  # the file of before is no obstacle


def test_a_second_server_says_where_the_socket_of_the_first_is(site: Site, start: Any) -> None:
    first = start("--unix")
    code, said = refused(site)
    assert code == 4 and first.place["socket"] in said


@pytest.mark.parametrize("more", [("--port", "7433"), ("--host", "127.0.0.1")])
def test_a_socket_has_no_port_and_no_address(site: Site, more: tuple[str, str]) -> None:
    code, said = refused(site, "--unix", *more)
    assert code == 5 and "--unix listens on no port" in said
    assert place_of(site.home) is None


def test_a_port_that_is_none_is_refused_by_the_name_of_its_option(site: Site) -> None:
    code, said = refused(site, "--port", "99999")
    assert code == 5 and "headway: --port: 99999 is not a port; the largest is 65535" in said


def test_without_the_extra_the_message_names_it(site: Site, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "uvicorn.py").write_text("raise ModuleNotFoundError('no', name='uvicorn')\n")
    path = os.pathsep.join([str(hidden), site.env["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "headway", "serve"],
        cwd=site.folder, env={**site.env, "PYTHONPATH": path}, capture_output=True, text=True,
        timeout=DEADLINE, check=False,
    )  # fmt: skip
    assert done.returncode == 5 and "headway[web]" in done.stderr
    assert "Traceback" not in done.stderr


# -- how it ends -------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_goodbye_to_its_streams(site: Site, start: Any, number: int) -> None:
    token = site.client.tokens.add("reader", role="read")
    serving = start("--port", str(free_port()))
    with serving.wire() as wire:
        given = [*bearer(token), ("Accept", "text/event-stream")]
        wire.put(wire.request("GET", "/api/v1/events", given))
        assert wire.hear_head()[0] == 200
        frames = wire.frames()
        assert next(frames).event == "hello"
        os.kill(serving.process.pid, number)
        assert [each.event for each in frames] == ["bye"]
    assert serving.process.wait(DEADLINE) == 0
    assert place_of(site.home) is None
    assert not os.path.exists(os.path.join(site.home.run, "web.json"))


def test_after_a_kill_it_begins_again_and_has_lost_nothing(site: Site, start: Any) -> None:
    token = site.client.tokens.add("submitter", role="submit")
    port = str(free_port())
    first = start("--port", port)
    made = first.ask("POST", "/api/v1/jobs", token, {"argv": ["true"]})
    assert made.status == 201
    assert first.end(signal.SIGKILL) == -signal.SIGKILL
    assert place_of(site.home) is None  # its file is there; the kernel knows better
    second = start("--port", port)
    shown = second.ask("GET", f"/api/v1/jobs/{made.json['job']['id']}", token)
    assert shown.json["job"] == made.json["job"]


# -- what it logs ------------------------------------------------------------------------------


def test_settings_count_as_they_stand_in_the_file_now(site: Site, start: Any) -> None:
    """Else what a refusal says to write there would help nobody before the next start."""
    server = start("--no-autostart")
    token = site.run("tokens", "add", "root", "--role", "admin").stdout.strip()
    config = Path(site.home.config)

    def add(name: str) -> Heard:
        wanted = {"name": name, "url": "http://127.0.0.1:9/"}
        return server.ask("POST", "/api/v1/webhooks", token, wanted)

    refused = add("one")
    assert refused.status == 400
    line = refused.json["detail"].partition("begin config.toml with: ")[2]
    config.write_text(f"{line}\n[worker]\nautostart = true\n")
    made = [add(f"of-thread-{number}") for number in range(8)]
    assert {each.status for each in made} == {201}
    for _ in range(20):  # by whichever thread
        settings = server.ask("GET", "/api/v1/settings", token).json["settings"]
        present = {each["key"]: each["value"] for each in settings}
        assert present["worker.autostart"] is False, "what the command line said stays"
        assert present["webhooks.allow"] == ["127.0.0.1:9"]
    config.write_text("nonsense")
    assert add("two").status == 201
    assert any("the settings of before" in each.get("message", "") for each in server.lines())


@on_both_stores
def test_after_a_restore_it_serves_the_restored_store(
    tmp_path: Path, store_url: str | None
) -> None:
    """Also while somebody listens, who is told; on SQLite the store is another file then."""
    site = Site(tmp_path, config="[worker]\nautostart = false\n", store_url=store_url)
    try:
        server = Process(site)
        token = site.run("tokens", "add", "ear", "--role", "submit").stdout.strip()

        def jobs() -> list[str] | None:
            heard = server.ask("GET", "/api/v1/jobs", token)
            return [each["id"] for each in heard.json["jobs"]] if heard.status == 200 else None

        def listen(wire: Wire, *more: tuple[str, str]) -> Iterator[Frame]:
            given = [*bearer(token), ("Accept", "text/event-stream"), *more]
            wire.put(wire.request("GET", "/api/v1/events", given))
            assert wire.hear_head()[0] == 200
            return wire.frames()

        job = {"argv": ["true"]}
        assert server.ask("POST", "/api/v1/jobs", token, job).status == 201
        site.run("backup", "backup.db")
        assert server.ask("POST", "/api/v1/jobs", token, job).status == 201
        with server.wire() as wire:
            frames = listen(wire)
            hello = next(frames)
            site.run("restore", "--force", "backup.db")
            assert [each.event for each in frames][-1] == "bye"
        assert jobs() == ["job-1"], "whoever was told finds the restored store"
        with server.wire() as wire:
            frames = listen(wire, ("Last-Event-ID", hello.id))
            reset = next(frames)
            assert reset.event == "reset" and reset.data["epoch"] != hello.data["epoch"]
            made = server.ask("POST", "/api/v1/jobs", token, job).json["job"]["id"]
            assert next(each for each in frames if each.event == "submitted").data["job"] == made
        site.run("restore", "--force", "backup.db")  # nobody listens: who asks first is told
        wait_for(lambda: jobs() == ["job-1"], what="the store that was restored once more")
        assert server.ask("POST", "/api/v1/jobs", token, job).status == 201
        assert server.end() == 0
        assert "Traceback" not in server.log.read_text()
    finally:
        site.close()


def test_a_log_line_is_json_without_query_body_or_token(site: Site, start: Any) -> None:
    token = site.client.tokens.add("logged", role="submit")
    serving = start("--port", str(free_port()))
    serving.ask("GET", "/api/v1/jobs?name=canary-query", token)
    serving.ask("POST", "/api/v1/jobs", token, {"argv": ["echo", "canary-body"]})
    serving.ask("GET", "/api/v1/canary-path", token)
    serving.ask("GET", "/api/v1/jobs", "hw_canary-token")
    serving.ask("GET", f"/api/v1/jobs?token={token}")
    with serving.wire() as wire:
        wire.put(b"canary-no-http\r\n\r\n")
        wire.hear()
    assert serving.end() == 0
    text = serving.log.read_text()
    assert "canary" not in text and token not in text
    lines = [each for each in serving.lines() if "route" in each]
    assert [each["code"] for each in lines] == [200, 201, 404, 401, 400]
    assert [each["route"] for each in lines][:3] == ["/api/v1/jobs", "/api/v1/jobs", None]
    for each in lines:
        assert set(each) == {"time", "level", "id", "method", "route", "code", "ms", "principal"}
    assert [each["principal"] for each in lines] == ["logged"] * 3 + [None] * 2


def test_what_nobody_may_ask_for_fills_no_disk(site: Site, start: Any) -> None:
    """Any process of the machine can send it for ever; a token's own requests are all logged."""
    token = site.client.tokens.add("logged", role="read")
    serving = start("--port", str(free_port()))
    with serving.wire() as wire:
        for _ in range(LINES_OF_NOBODY + 40):
            assert wire.ask("GET", "/api/v1/jobs").status == 401
    for _ in range(40):
        with serving.wire() as wire:
            wire.put(b"no http\r\n\r\n")
            assert wire.hear().status == 400
    for _ in range(5):
        assert serving.ask("GET", "/api/v1/me", token).status == 200
    assert serving.end() == 0
    named = [each.get("principal") for each in serving.lines()]
    assert named == [None] * LINES_OF_NOBODY + ["logged"] * 5


def test_the_next_line_says_how_many_were_left_out() -> None:
    few, said = FewOfNobody(), []
    for at in (*[0.0] * (LINES_OF_NOBODY + 7), MINUTE - 1, MINUTE, MINUTE + 1):
        record = logging.makeLogRecord(
            {"name": "headway.web", "msg": '{"code": 401}', "of_nobody": True, "created": 1e9 + at}
        )
        if few.filter(record):
            said.append(json.loads(JsonLines().format(record)).get("left_out"))
    assert said == [*[None] * LINES_OF_NOBODY, 8, None]


# -- its worker --------------------------------------------------------------------------------


@pytest.fixture
def lively(tmp_path: Path) -> Iterator[Site]:
    folder = tmp_path / "lively"
    folder.mkdir()
    made = Site(folder, config='[worker]\nidle = "1s"\n')
    yield made
    made.close()


def test_a_submit_starts_a_worker_which_runs_it(lively: Site, start: Any) -> None:
    token = lively.client.tokens.add("submitter", role="submit")
    serving = start("--port", str(free_port()), site=lively)
    with serving.wire() as wire:
        given = [*bearer(token), ("Prefer", "wait=60")]
        heard = wire.ask("POST", "/api/v1/jobs", given, {"argv": ["echo", "hi"]})
    assert heard.status == 200 and heard.json["job"]["state"] == "succeeded"
    assert "headway-worker" not in heard.headers


@pytest.mark.parametrize("told", [("--no-autostart",), ()])
def test_where_it_may_start_none_it_says_that_none_is_there(
    lively: Site, start: Any, told: tuple[str, ...]
) -> None:
    """A worker inside a service's control group would die with that service."""
    token = lively.client.tokens.add("submitter", role="submit")
    if told:
        serving = start("--port", str(free_port()), *told, site=lively)
    else:
        script = 'SYSTEMD_EXEC_PID=$$ exec "$0" -m headway serve --json --port "$1"'
        made = subprocess.Popen(
            ["sh", "-c", script, sys.executable, str(free_port())],
            cwd=lively.folder, env=lively.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
        serving = Process.__new__(Process)
        serving.process, serving.site = made, lively
        assert made.stdout is not None
        serving.place = json.loads(made.stdout.readline())
    try:
        heard = serving.ask("POST", "/api/v1/jobs", token, {"argv": ["true"]})
        assert heard.status == 201 and heard.header("headway-worker") == "none"
        assert lively.background_pid() is None
    finally:
        serving.end()


# -- signing in --------------------------------------------------------------------------------


def test_a_link_signs_in_only_while_the_server_of_this_home_lives(site: Site, start: Any) -> None:
    assert site.run("web", "login", check=False).returncode == 3
    port = free_port()
    serving = start("--port", str(port))
    link = site.run("web", "login").stdout.strip()
    where, _, code = link.partition("/login#")
    assert where == serving.place["url"] and len(code) >= 22
    plain = json.loads(site.run("web", "login", "--plain", "--role", "read", "--json").stdout)
    assert plain["url"].startswith(f"http://127.0.0.1:{port}/login#") and plain["role"] == "read"
    with serving.wire() as wire:
        given = [("Origin", f"http://{wire.host}")]
        used = wire.ask("POST", "/login", given, {"code": plain["url"].partition("#")[2]})
    assert used.status == 303
    serving.end(signal.SIGKILL)
    # A stranger may sit on its port now.
    with socket.create_server(("127.0.0.1", port)):
        assert site.run("web", "login", check=False).returncode == 3


def test_a_link_can_be_for_a_name_that_others_know_the_server_by(
    tmp_path: Path, start: Any
) -> None:
    """A browser behind a proxy sends that name, and a session is good under one name alone."""
    folder = tmp_path / "known"
    folder.mkdir()
    config = '[worker]\nautostart = false\n[web]\norigins = ["https://jobs.example.org"]\n'
    site = Site(folder, config=config)
    try:
        serving = start("--port", str(free_port()), site=site)
        for wrong in (["https://other.example"], ["https://jobs.example.org", "--plain"]):
            refused = site.run("web", "login", "--origin", *wrong, check=False)
            assert refused.returncode == 5, refused
        link = site.run("web", "login", "--origin", "https://jobs.example.org").stdout.strip()
        where, _, code = link.partition("/login#")
        assert where == "https://jobs.example.org"
        with serving.wire() as wire:
            known = ["jobs.example.org"]
            given = [("Origin", where)]
            wire.put(wire.request("POST", "/login", given, {"code": code}, hosts=known))
            begun = wire.hear()
            assert begun.status == 303
            cookie = [("Cookie", begun.header("set-cookie").partition(";")[0])]
            wire.put(wire.request("GET", "/api/v1/me", cookie, hosts=known))
            assert wire.hear().status == 200
            wire.put(wire.request("GET", "/api/v1/me", cookie))
            assert wire.hear().status == 401
    finally:
        site.close()


def test_it_says_the_address_that_it_was_told(tmp_path: Path) -> None:
    folder = tmp_path / "told"
    folder.mkdir()
    site = Site(folder, config='[worker]\nautostart = false\n[web]\norigins = ["http://x.org"]\n')
    port, log = free_port(), folder / "log"
    arguments = ["serve", "--host", "127.0.0.2", "--allow-remote", "--port", str(port)]
    with open(log, "wb") as stderr:
        served = warm.start([], arguments, cwd=site.folder, env=site.env, stderr=stderr)
    try:
        wait_for(lambda: f" at http://127.0.0.2:{port};" in log.read_text())
        with Wire(("127.0.0.2", port)) as wire:
            assert wire.ask("GET", "/healthz").status == 200
    finally:
        served.terminate()
        served.wait(DEADLINE)
        site.close()


@pytest.mark.parametrize("inside", [False, True])
def test_on_a_terminal_it_prints_a_link_that_signs_in_but_not_inside_a_job(
    site: Site, inside: bool
) -> None:
    port = free_port()
    job = {"HEADWAY_CLAIM": "0" * 32, "HEADWAY_JOB_ID": "job-7"} if inside else {}
    ours, theirs = os.openpty()
    served = warm.start(
        [], ["serve", "--port", str(port)], cwd=site.folder, env={**site.env, **job}, stderr=theirs
    )  # type: ignore[arg-type]
    os.close(theirs)
    try:
        wait_for(lambda: place_of(site.home) is not None)
        with Wire(("127.0.0.1", port)) as wire:
            assert wire.ask("GET", "/healthz").status == 200
        served.terminate()
        assert served.wait(DEADLINE) == 0
        said = os.read(ours, 1 << 16).decode()
    finally:
        served.kill()
        os.close(ours)
    assert f"http://127.0.0.1:{port}" in said
    assert (f"sign in: http://{host_name_of(site.home)}:{port}/login#" in said) is not inside


def test_a_home_has_a_name_of_its_own(tmp_path: Path) -> None:
    names = {host_name_of(Home(str(tmp_path / each / ".headway"))) for each in "ab"}
    assert len(names) == 2 and all(each.endswith(".localhost") for each in names)
