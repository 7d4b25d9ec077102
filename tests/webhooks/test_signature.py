"""Signatures that the library of Standard Webhooks accepts."""

import json
import os
from pathlib import Path

import pytest
import standardwebhooks
from post import Post

from both_stores import on_a_file
from headway.base.errors import ConflictError, InvalidInputError, NotFoundError, StoreError
from headway.webhooks.secret_file import SecretFile, fingerprint_of, key_of, new_secret
from headway.webhooks.signature import signed_headers

# The vector of the specification (standard-webhooks, libraries' tests).
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID, TIME, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_vector_of_the_specification() -> None:
    headers = signed_headers(ID, TIME, BODY, [SECRET])  # fault F8
    assert headers == {
        "webhook-id": ID,
        "webhook-timestamp": str(TIME),
        "webhook-signature": SIGNATURE,
    }


def test_with_two_secrets_either_verifies() -> None:
    old, new = new_secret(), new_secret()  # fault F8
    headers = signed_headers(ID, TIME, BODY, [new, old])
    first, second = headers["webhook-signature"].split(" ")
    assert first == signed_headers(ID, TIME, BODY, [new])["webhook-signature"]
    assert second == signed_headers(ID, TIME, BODY, [old])["webhook-signature"]


def test_what_was_sent_verifies_and_nothing_else_does(real_post: Post) -> None:
    post = real_post
    secret = post.add()["secret"]
    post.run()
    post.deliver()
    (got,) = post.receiver.got
    verifier = standardwebhooks.Webhook(secret)
    assert verifier.verify(got.body, dict(got.headers)) == json.loads(got.body)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        verifier.verify(got.body + b" ", dict(got.headers))
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(new_secret()).verify(got.body, dict(got.headers))


def test_the_url_of_a_job_is_signed_with_the_secret_of_the_home(real_post: Post) -> None:
    post = real_post
    post.run(webhooks=(post.receiver.url(),))
    post.deliver()
    (got,) = post.receiver.got
    standardwebhooks.Webhook(post.webhooks.secret()).verify(got.body, dict(got.headers))


def test_after_a_rotation_both_secrets_verify_until_the_overlap_is_over(post: Post) -> None:
    old = post.add()["secret"]  # fault F8
    rotated = post.webhooks.rotate("ci", overlap="1h")
    assert rotated["fingerprint"] == fingerprint_of(rotated["secret"]) and rotated["secret"] != old
    post.run()
    post.deliver()
    post.clock.advance(3_601)
    post.run()
    post.deliver()

    def signed_by(secret: str, place: int) -> bool:
        got = post.receiver.got[place]
        stamp = int(got.headers["webhook-timestamp"])
        expected = signed_headers(got.id, stamp, got.body, [secret])["webhook-signature"]
        return expected in got.headers["webhook-signature"].split(" ")

    assert [signed_by(old, 0), signed_by(rotated["secret"], 0)] == [True, True]
    assert [signed_by(old, 1), signed_by(rotated["secret"], 1)] == [False, True]
    assert post.webhooks.secret("ci") == rotated["secret"]


@on_a_file
def test_each_try_has_its_own_time_and_the_same_id(post: Post) -> None:
    from receiver import status

    post.receiver.usual = status(500)
    post.add()
    post.run()
    post.deliver()
    post.after(30)
    first, second = post.receiver.got
    assert first.id == second.id and first.body == second.body
    assert first.headers["webhook-timestamp"] != second.headers["webhook-timestamp"]


# -- the file ----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_!!!", "whsec_YWJj", "YWJj" * 8])
def test_what_is_no_secret_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="this is no secret"):
        key_of(text)


@on_a_file
def test_secrets_are_in_a_file_of_their_own_and_in_no_store(post: Post) -> None:
    secret = post.add()["secret"]
    rotated = post.webhooks.rotate("ci")["secret"]
    file = SecretFile(post.bench.home)
    assert os.stat(file.path).st_mode & 0o777 == 0o600
    assert set(file.all().values()) == {secret, rotated}
    backup = post.bench.client.admin.backup(str(post.bench.folder / "backup.db"))
    for path in (backup, post.bench.home.database):
        content = Path(path).read_bytes()
        assert secret[6:].encode() not in content and rotated[6:].encode() not in content
    post.webhooks.rotate("ci", overlap="0s")
    assert secret not in file.all().values() and rotated not in file.all().values()
    post.webhooks.remove("ci")
    assert file.all() == {}


@on_a_file
def test_a_file_that_others_can_read_is_refused(post: Post) -> None:
    post.add()
    path = SecretFile(post.bench.home).path
    os.chmod(path, 0o644)
    with pytest.raises(StoreError, match=f"chmod 0600 {path}"):
        post.webhooks.secret("ci")
    post.run()
    with pytest.raises(StoreError, match="others may know it"):
        post.deliver()
    assert post.receiver.got == []


@on_a_file
def test_a_secret_is_brought_to_another_home(post: Post) -> None:
    secret = post.add()["secret"]
    file = SecretFile(post.bench.home)
    file.forget(fingerprint_of(secret))
    assert not post.webhooks.show("ci")["signs_here"]
    with pytest.raises(NotFoundError, match="webhooks import"):
        post.webhooks.secret("ci")
    with pytest.raises(InvalidInputError, match="not the secret of ci"):
        post.webhooks.import_("ci", new_secret())
    assert file.all() == {}
    assert post.webhooks.import_("ci", f"{secret}\n")["fingerprint"] == fingerprint_of(secret)
    assert post.webhooks.secret("ci") == secret and post.webhooks.show("ci")["signs_here"]


@on_a_file
def test_the_secret_of_jobs_own_urls_can_be_brought_and_rotated(post: Post) -> None:
    given = new_secret()
    post.webhooks.import_(None, given)
    assert post.webhooks.secret() == given
    with pytest.raises(InvalidInputError, match="not the secret of jobs' own URLs"):
        post.webhooks.import_(None, new_secret())
    rotated = post.webhooks.rotate()
    assert post.webhooks.secret() == rotated["secret"] != given
    with pytest.raises(InvalidInputError, match="longer than 30d"):
        post.webhooks.rotate(overlap="31d")


@on_a_file
def test_rotating_without_the_old_secret_leaves_no_overlap(post: Post) -> None:
    """As after a restore on another machine: the old one is not here."""
    secret = post.add()["secret"]
    SecretFile(post.bench.home).forget(fingerprint_of(secret))
    assert post.webhooks.rotate("ci")["overlap_until"] is None
    post.run()
    post.deliver()
    assert len(post.receiver.got[0].headers["webhook-signature"].split(" ")) == 1


def test_a_name_is_given_once(post: Post) -> None:
    post.add()
    with pytest.raises(ConflictError, match="there already"):
        post.add()
    assert len(SecretFile(post.bench.home).all()) == 1
