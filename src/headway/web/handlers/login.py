"""How a browser signs in: a link with a code that is good once, and a page that sends it.

The code stands behind the `#` of the link, which no server and no log sees. The page is public, so
it says nothing about the home.
"""

from headway.admin.tokens import SESSION_LASTS
from headway.base.clock import SECOND
from headway.jobs.actor import require_person
from headway.web.calls import Reply, WebCall
from headway.web.guard import COOKIE, SECURE_COOKIE, host_name
from headway.web.problems import HttpProblem

_PAGE = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Headway</title>
<body>
<main>
<h1>Headway</h1>
<form method="post" action="/login">
<p><label>Code <input name="code" autocomplete="off" autofocus></label> <button>Sign in</button></p>
</form>
<p id="said">The link of <code>headway web login</code> has a code behind its #.</p>
</main>
<script src="/login.js"></script>
</body>
</html>
"""
_SCRIPT = b"""\
"use strict";
const code = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
if (code) {
  document.querySelector("[name=code]").value = code;
  document.querySelector("form").submit();
}
"""
_AGAIN = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0">
<title>Headway</title>
</html>
"""


HEALTHY = Reply(body=b"ok\n", media="text/plain; charset=utf-8")
PAGE = Reply(body=_PAGE, media="text/html; charset=utf-8")
SCRIPT = Reply(body=_SCRIPT, media="text/javascript; charset=utf-8")
AGAIN = Reply(body=_AGAIN, media="text/html; charset=utf-8")  # for a link of another site


def fixed(call: WebCall) -> Reply:
    """Of routes whose answer is always the same; it is never called."""
    raise NotImplementedError(call)


def sign_in(call: WebCall) -> Reply:
    """A session for a code."""
    client = call.client
    require_person(client.context, "log in")
    code = call.body.get("code", "")
    begun = client.tokens.file.begin_session(str(code), host_name(call.host), call.now)
    if begun is None:
        raise HttpProblem(
            403,
            "login-refused",
            "the code is used, too old, or of another address; `headway web login` makes one",
        )
    secret, _ = begun
    name = SECURE_COOKIE if call.secure else COOKIE
    secure = "; Secure" if call.secure else ""
    lasts = SESSION_LASTS // SECOND
    cookie = f"{name}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={lasts}{secure}"
    return Reply(303, None, {"Location": "/", "Set-Cookie": cookie})
