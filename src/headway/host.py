"""Which host and home this is, so that a claim says who can judge it.

The host id is random and kept in the home together with what it was made for. A copied home or a
recreated container is another host: it gets a new id and leaves the old one's claims alone.
"""

import json
import os
from typing import NamedTuple

from headway.home import Home
from headway.supervise.proc import boot_id


class Host(NamedTuple):
    id: str
    boot_id: str
    home: str


def this_host(home: Home) -> Host:
    return Host(_host_id(home), boot_id(), home.path)


def _host_id(home: Home) -> str:
    status = os.stat(home.path)
    made_for = [_machine_id(), status.st_dev, status.st_ino]
    try:
        with open(home.host_id, encoding="utf-8") as file:
            document = json.load(file)
        if document["made_for"] == made_for:
            return str(document["id"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        pass
    fresh = os.urandom(8).hex()
    path = f"{home.host_id}.{os.getpid()}.tmp"
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump({"id": fresh, "made_for": made_for}, file)
    os.rename(path, home.host_id)
    return fresh


def _machine_id() -> str:
    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
