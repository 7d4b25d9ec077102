"""Where a webhook may be sent to: the form of a URL, and the addresses behind its name. Pure.

A name is resolved once and every address is judged; then one of these very addresses is connected
to. So neither a name that changes its mind nor a redirect leads into a network that is nobody
else's business. Exceptions stand in `webhooks.allow`.
"""

import ipaddress
import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LONGEST_URL = 2_000
DEFAULT_PORTS = {"http": 80, "https": 443}
FIRST_FREE_PORT = 1024
_NAME = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?")

# Ranges that Python's `is_global` lets pass, or judges differently from version to version.
_NOT_FOR_US = tuple(
    ipaddress.ip_network(each)
    for each in (
        *("192.0.0.0/24", "192.88.99.0/24", "100.64.0.0/10", "fec0::/10", "3fff::/20", "5f00::/16"),
        # These have an IPv4 address inside, which somebody on the way may connect to.
        *("::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32"),
    )
)


class Destination(NamedTuple):
    """A URL, taken apart. `host` is a name or an address, without brackets."""

    scheme: str
    host: str
    port: int
    target: str  # path and query, as they are sent

    @property
    def origin(self) -> str:
        """All that may be shown of it: the rest is often as good as a password."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """As in the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def address(self) -> Address | None:
        """If the host is no name."""
        return _address(self.host)


class AllowedTarget(NamedTuple):
    """One entry of `webhooks.allow`; without a port it is for every one."""

    network: Network
    port: int | None


def destination_of(url: str) -> Destination | str:
    """The URL taken apart, or what is wrong with it."""
    if not url or len(url) > LONGEST_URL:
        return f"it has {len(url)} characters; 1 to {LONGEST_URL} are possible"
    if any(ord(each) <= 32 or ord(each) >= 127 for each in url):
        return "it has a space, a control character or a letter that is not ASCII; encode it"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"it cannot be read: {error}"
    if port == 0:
        return "it has port 0"
    if parts.scheme not in DEFAULT_PORTS:
        return "it begins neither with https:// nor with http://"
    if parts.username is not None or parts.password is not None:
        return "it has a user or a password in it; requests are signed instead"
    if parts.fragment or "#" in url:
        return "it has a fragment (#), which is never sent"
    host = parts.hostname or ""
    if _address(host) is None and not _NAME.fullmatch(host):
        return f"{host!r} is no name of a host"
    if _address(host) is None and _is_number(host):
        return f"{host!r} is neither a name nor an address as they are usually written"
    path = parts.path or "/"
    target = f"{path}?{parts.query}" if parts.query else path
    return Destination(parts.scheme, host, port or DEFAULT_PORTS[parts.scheme], target)


def objection_to(
    destination: Destination, addresses: Sequence[str], allowed: Sequence[AllowedTarget]
) -> str | None:
    """Why nothing may be sent there, if its name stands for these addresses; one that is refused
    is enough."""
    port = destination.port
    for text in addresses:
        address = _address(text)
        if address is None:
            return f"{text!r} is no address"
        if any(_covers(each, address, port) for each in allowed):
            continue
        if port not in DEFAULT_PORTS.values() and port < FIRST_FREE_PORT:
            return f"port {port} is neither 80 nor 443 nor {FIRST_FREE_PORT} or above"
        if not is_public(address):
            return f"{address} is not an address of the public internet"
    return None


def is_public(address: Address) -> bool:
    """Whether anybody's packets may go there."""
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        return False
    if any(address.version == each.version and address in each for each in _NOT_FOR_US):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def how_to_allow(destination: Destination, address: str) -> str:
    """The line of `config.toml` that lets this pass."""
    host = f"[{address}]" if ":" in address else address
    return f'webhooks.allow = ["{host}:{destination.port}"]'


def parse_allowed(text: str) -> AllowedTarget | None:
    """`127.0.0.1:9000`, `[::1]:9000`, `10.0.0.0/8`; None if it is nothing like that."""
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(/\d{1,3})?(?::(\d{1,5}))?", text)
    if match is None:
        return None
    try:
        network = ipaddress.ip_network((match[1] or match[2]) + (match[3] or ""))
    except ValueError:
        return None
    port = int(match[4]) if match[4] else None
    return None if port is not None and not 0 < port < 65_536 else AllowedTarget(network, port)


def _covers(entry: AllowedTarget, address: Address, port: int) -> bool:
    if entry.network.version != address.version or address not in entry.network:
        return False
    return entry.port is None or entry.port == port


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_number(host: str) -> bool:
    """What the system's resolver would read as an address: 127.1, 0x7f.1, 2130706433."""
    last = host.rstrip(".").rpartition(".")[2]
    return bool(re.fullmatch(r"0[xX][0-9A-Fa-f]*|[0-9]+", last))
