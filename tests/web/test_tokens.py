"""Tokens, codes and sessions in their file, and the commands about them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Bench, Site
from headway.admin.tokens import (
    CODE,
    CODE_LASTS,
    MOST_SESSIONS,
    SESSION,
    SESSION_LASTS,
    TOKEN,
    USE_WRITTEN_EVERY,
    TokenFile,
    csrf_value,
)
from headway.base.errors import ConflictError, InvalidInputError, NotFoundError
from headway.base.home import Home
from headway.cli.main import run

NOW = 1_800_000_000_000_000


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    (tmp_path / ".headway").mkdir()
    return TokenFile(Home(str(tmp_path / ".headway")))


def content(tmp_path: Path) -> str:
    return (tmp_path / ".headway" / "web" / "tokens.json").read_text()


def test_a_token_is_kept_as_its_digest_alone(tokens: TokenFile, tmp_path: Path) -> None:
    secret = tokens.add("ci", "submit", NOW)
    assert secret.startswith("hw_") and len(secret) == 46
    assert secret not in content(tmp_path) and secret[3:] not in content(tmp_path)
    found = tokens.find(secret, TOKEN, NOW)
    assert found is not None and found.principal().actor == "token:ci"
    assert tokens.add("ci2", "submit", NOW) != secret
    for wrong in (secret[:-1], secret.upper(), f" {secret}", found.digest, ""):
        assert tokens.find(wrong, TOKEN, NOW) is None


def test_a_name_is_given_once_also_after_it_was_revoked(tokens: TokenFile) -> None:
    secret = tokens.add("ci", "read", NOW)
    with pytest.raises(ConflictError, match="is there"):
        tokens.add("ci", "read", NOW)
    tokens.revoke("ci", NOW + 1)
    assert tokens.find(secret, TOKEN, NOW + 1) is None
    with pytest.raises(ConflictError, match="was revoked"):
        tokens.add("ci", "read", NOW)
    with pytest.raises(ConflictError, match="before"):
        tokens.revoke("ci", NOW)
    with pytest.raises(NotFoundError, match="nobody"):
        tokens.revoke("nobody", NOW)


def test_a_token_ends_at_its_expiry(tokens: TokenFile) -> None:
    secret = tokens.add("short", "read", NOW, lasts=10)
    assert tokens.find(secret, TOKEN, NOW + 9) is not None
    assert tokens.find(secret, TOKEN, NOW + 10) is None


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", ".x", "a\n", "é", "a" * 65, "a:b"])
def test_odd_names_are_refused(tokens: TokenFile, name: str) -> None:  # fault H4
    with pytest.raises(InvalidInputError, match="is not a name"):
        tokens.add(name, "read", NOW)


def test_what_contradicts_itself_is_refused(tokens: TokenFile) -> None:
    with pytest.raises(InvalidInputError, match="is not a role"):
        tokens.add("a", "root", NOW)
    with pytest.raises(InvalidInputError, match="agent"):
        tokens.add("a", "admin", NOW, agent=True)
    for role in ("read", "operate", "admin"):
        with pytest.raises(InvalidInputError, match="templates"):
            tokens.add("a", role, NOW, templates=("t",))
    assert not tokens.entries()


def test_a_code_begins_one_session_under_its_host(tokens: TokenFile, tmp_path: Path) -> None:
    code = tokens.login_code("ada", "operate", "h", NOW)
    assert code not in content(tmp_path)
    assert tokens.begin_session(code, "other", NOW) is None
    begun = tokens.begin_session(code, "h", NOW)
    assert begun is not None
    secret, entry = begun
    assert (entry.actor, entry.role, entry.host) == ("ada", "operate", "h")
    assert tokens.begin_session(code, "h", NOW) is None
    assert tokens.find(secret, SESSION, NOW) is not None
    assert tokens.find(secret, TOKEN, NOW) is tokens.find(secret, CODE, NOW) is None
    assert secret not in content(tmp_path) and csrf_value(secret) not in content(tmp_path)
    assert tokens.find(secret, SESSION, NOW + SESSION_LASTS) is None


def test_a_code_is_good_for_five_minutes(tokens: TokenFile) -> None:
    codes = [tokens.login_code("ada", "read", "h", NOW) for _ in range(2)]
    assert tokens.begin_session(codes[0], "h", NOW + CODE_LASTS - 1) is not None
    assert tokens.begin_session(codes[1], "h", NOW + CODE_LASTS) is None


def test_a_use_is_written_now_and_then_alone(tokens: TokenFile) -> None:
    secret = tokens.add("ci", "read", NOW)
    entry = tokens.find(secret, TOKEN, NOW)
    assert entry is not None

    def used_at() -> int | None:
        found = tokens.find(secret, TOKEN, NOW)
        return found.used_at if found else None

    tokens.used(entry.digest, NOW)
    assert used_at() == NOW
    tokens.used(entry.digest, NOW + USE_WRITTEN_EVERY - 1)
    assert used_at() == NOW
    tokens.used(entry.digest, NOW + USE_WRITTEN_EVERY)
    assert used_at() == NOW + USE_WRITTEN_EVERY
    tokens.used("of nobody", NOW)


def test_a_change_of_another_reader_is_seen_at_once(tokens: TokenFile, tmp_path: Path) -> None:
    other = TokenFile(Home(str(tmp_path / ".headway")))
    secret = tokens.add("ci", "read", NOW)
    assert other.find(secret, TOKEN, NOW) is not None
    tokens.revoke("ci", NOW)
    assert other.find(secret, TOKEN, NOW) is None


def test_what_is_over_is_tidied_away_and_names_stay(tokens: TokenFile) -> None:
    tokens.add("ci", "read", NOW, lasts=1)
    tokens.login_code("ada", "read", "h", NOW)
    later = NOW + CODE_LASTS
    for _ in range(MOST_SESSIONS + 5):
        tokens.login_code("ada", "read", "h", later)
    entries = tokens.entries()
    assert [each.name for each in entries if each.sort == TOKEN] == ["ci"]
    assert len([each for each in entries if each.sort == CODE]) == MOST_SESSIONS


def test_inside_a_job_no_tokens_are_made_or_revoked_and_no_codes_are_made(bench: Bench) -> None:
    """A job would give itself rights that its owner did not give it, or take those of others."""
    bench.client.tokens.add("theirs", role="read")
    context = bench.client.context
    context.environ = {**context.environ, "HEADWAY_CLAIM": "0" * 32, "HEADWAY_JOB_ID": "job-7"}
    for act in (
        lambda: bench.client.tokens.add("mine", role="read"),
        lambda: bench.client.tokens.login_code(host="h"),
        lambda: bench.client.tokens.revoke("theirs"),
    ):
        with pytest.raises(ConflictError, match="inside job-7"):
            act()
    assert [(each.name, each.revoked_at) for each in bench.client.tokens.list()] == [
        ("theirs", None)
    ]


# -- commands ----------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, config="[worker]\nautostart = false\n")
    yield made
    made.close()


def test_tokens_are_made_listed_and_revoked(site: Site) -> None:
    made = site.run("tokens", "add", "ci", "--role", "submit")
    secret = made.stdout.strip()
    assert secret.startswith("hw_") and "shell as this user" in made.stderr
    plain = site.run("tokens", "list").stdout
    listed = json.loads(site.run("tokens", "list", "--json").stdout)["tokens"]
    assert "ci" in plain and secret not in plain and secret not in json.dumps(listed)
    assert [(each["name"], each["role"], each["holds"]) for each in listed] == [
        ("ci", "submit", True)
    ]
    assert "digest" not in listed[0]
    gone = json.loads(site.run("tokens", "revoke", "ci", "--json").stdout)["token"]
    assert gone["holds"] is False and gone["revoked_at"]
    assert site.run("tokens", "revoke", "ci", check=False).returncode == 4
    assert site.run("tokens", "revoke", "nobody", check=False).returncode == 3
    assert site.run("tokens", "add", "ci", "--role", "read", check=False).returncode == 4


def test_a_token_of_templates_names_those_that_are_there(site: Site) -> None:
    for name in ("a", "b"):
        site.client.templates.add(name, argv=["true"])
    made = site.run("tokens", "add", "bound", "--role", "submit", "--template", "a,b", "--json")
    assert json.loads(made.stdout)["token"].startswith("hw_") and "shell" not in made.stderr
    found = json.loads(site.run("tokens", "list", "--json").stdout)["tokens"][0]
    assert found["templates"] == ["a", "b"]
    unknown = site.run("tokens", "add", "x", "--role", "submit", "--template", "c", check=False)
    assert unknown.returncode == 3 and "'c'" in unknown.stderr


def test_an_agent_and_an_expiry_are_kept(site: Site) -> None:
    site.run("tokens", "add", "bot", "--role", "operate", "--agent", "--expires", "30d")
    found = json.loads(site.run("tokens", "list", "--json").stdout)["tokens"][0]
    assert found["kind"] == "agent" and found["expires_at"]
    refused = site.run("tokens", "add", "root", "--role", "admin", "--agent", check=False)
    assert refused.returncode == 5


def test_a_file_that_others_may_read_stops_the_commands(site: Site) -> None:
    site.run("tokens", "add", "ci", "--role", "read")
    os.chmod(os.path.join(site.home.path, "web", "tokens.json"), 0o644)
    said = site.run("tokens", "list", check=False)
    assert said.returncode == 6 and "chmod 0600" in said.stderr


def test_a_token_that_is_refused_makes_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADWAY_HOME", raising=False)
    assert run(["tokens", "add", "a b", "--role", "read"]) == 5
    assert run(["tokens", "add", "a", "--role", "read", "--expires", "0s"]) == 5
    assert list(tmp_path.iterdir()) == []
