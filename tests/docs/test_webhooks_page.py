"""docs/webhooks.md: its commands, its receiver and its way to verify, played against each other."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from test_scenes import ANY_BLOCK

from harness import Site, wait_for
from headway.webhooks.signature import signed_headers

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "webhooks.md").read_text(encoding="utf-8")
BLOCKS = [(kind, text) for kind, _, text in ANY_BLOCK.findall(PAGE)]


def block(begins: str) -> str:
    (found,) = [text for _, text in BLOCKS if text.startswith(begins)]
    return found


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number: int = listener.getsockname()[1]
    return number


class Reader:
    """Somebody who does what the page says, in a folder of their own."""

    def __init__(self, site: Site, programs: Path, port: int) -> None:
        self.site = site
        self.port = port
        program = programs / "headway"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m headway "$@"\n')
        program.chmod(0o755)
        os.symlink(sys.executable, programs / "python3")
        self.env = {**site.env, "PATH": f"{programs}{os.pathsep}{site.env['PATH']}"}
        self.receiver: subprocess.Popen[str] | None = None

    def types(self, text: str, **env: str) -> str:
        """Into a shell; 9000 is the port of the page."""
        text = text.replace("9000", str(self.port))
        done = subprocess.run(
            ["/bin/sh", "-ec", text],
            cwd=self.site.folder,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def starts_receiver(self, line: str) -> None:
        """The certificates of the real Python are where its own program is, not a link to it."""
        self.receiver = subprocess.Popen(
            ["/bin/sh", "-c", f"exec env {line.replace('python3', sys.executable)}"],
            cwd=self.site.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        if self.receiver is not None:
            self.receiver.kill()
            self.receiver.communicate()


@pytest.fixture
def reader(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Reader]:
    allow = block("webhooks.allow").replace("9000", str(port))
    site = Site(tmp_path, config=allow, env={"HEADWAY_ACTOR": "ada"})
    (site.folder / "Makefile").write_text("test:\n\t@true\n")
    made = Reader(site, tmp_path_factory.mktemp("bin"), port)
    yield made
    made.close()
    site.close()


def test_every_block_is_played_by_a_test_of_this_file() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    begins = re.findall(r'block\(\s*"([^"]+)"', source)
    assert [text for _, text in BLOCKS if not text.startswith(tuple(begins))] == []


def test_what_comes_first_works_as_it_stands(reader: Reader) -> None:
    said = reader.types(block("headway webhooks add ops"))
    assert said.startswith("whsec_") and "ops.example.org" in said
    reader.types(block("headway submit --webhook"))
    reader.types(block("headway webhooks deliveries --state failed"))
    script = reader.site.folder / "block.py"
    script.write_text(block("import headway"))
    reader.types(f"{sys.executable} -P block.py")
    assert [each["name"] for each in reader.site.client.webhooks.list()] == ["ops", "ci"]


@pytest.mark.req("D15")
def test_the_receiver_of_the_page_gets_a_real_delivery_and_refuses_a_forged_one(
    reader: Reader,
) -> None:
    (reader.site.folder / "receiver.py").write_text(block("import os"))
    add, start = block("headway webhooks add chat").strip().splitlines()
    reader.types(add)
    reader.starts_receiver(start.replace("9000", str(reader.port)))
    wait_for(lambda: _listens(reader.port), what="the receiver to listen")
    reader.types("headway exec --name build -- true")
    assert reader.receiver is not None and reader.receiver.stdout is not None
    assert reader.receiver.stdout.readline() == "job.completed job-1 build\n"
    reader.types("headway webhooks test chat")
    if shutil.which("curl") is None or shutil.which("openssl") is None:
        return
    body, secret = b'{"type": "x", "data": {}}', (reader.site.folder / "secret").read_text().strip()
    (reader.site.folder / "body.json").write_bytes(body)
    seconds = str(reader.site.client.now() // 1_000_000)
    url = f"http://127.0.0.1:{reader.port}/"
    given = {"SECRET": secret, "ID": "e-1-1", "TIME": seconds, "URL": url}
    signature = reader.types(block("key=$("), **given).strip()
    expected = signed_headers("e-1-1", int(seconds), body, [secret])
    assert f"v1,{signature}" == expected["webhook-signature"]
    send = block("curl")
    reader.types(send, **given, SIGNATURE=signature)
    with pytest.raises(AssertionError, match="401"):
        reader.types(send, **given, SIGNATURE="AAAA" + signature[4:])


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
