"""Where a webhook may be sent to: every class of addresses, every form of a URL."""

import ipaddress

import pytest

from headway.core.destinations import (
    AllowedTarget,
    Destination,
    destination_of,
    how_to_allow,
    is_public,
    objection_to,
    parse_allowed,
)

REFUSED = {
    "loopback": "127.0.0.1 127.255.255.254 ::1",
    "private": "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fd12:3456::1",
    "link-local, and with it the metadata of clouds": "169.254.169.254 fe80::1",
    "unspecified": "0.0.0.0 0.1.2.3 ::",
    "carriers": "100.64.0.1 100.127.255.255",
    "of protocols": "192.0.0.8 192.0.0.170",
    "former 6to4 relays": "192.88.99.1",
    "benchmarks": "198.18.0.1 198.19.255.255 2001:2::1",
    "documentation": "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1",
    "segment routing": "5f00::1",
    "multicast": "224.0.0.1 239.255.255.255 ff02::1 ff0e::1",
    "reserved": "240.0.0.1 255.255.255.255",
    "former site-local": "fec0::1 feff::1",
    "mapped": "::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:10.0.0.1",
    "compatible": "::127.0.0.1 ::8.8.8.8",
    "NAT64": "64:ff9b::7f00:1 64:ff9b::808:808 64:ff9b:1::1",
    "6to4": "2002:7f00:1:: 2002:808:808::1",
    "Teredo": "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "ORCHID": "2001:10::1",
    "discarded": "100::1",
    "with a zone": "fe80::1%eth0 2606:4700::1%eth0",
}
ACCEPTED = "8.8.8.8 1.1.1.1 93.184.216.34 172.32.0.1 100.128.0.1 2606:4700:4700::1111 2a00:1450::1"


@pytest.mark.parametrize(
    "address", [each for group in REFUSED.values() for each in group.split()], ids=str
)
def test_an_address_that_is_not_of_the_public_internet_is_refused(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ACCEPTED.split())
def test_an_address_of_the_public_internet_is_accepted(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def test_one_address_that_is_refused_is_enough() -> None:
    to = Destination("https", "two.example", 443, "/")
    assert objection_to(to, ["8.8.8.8"], []) is None
    refused = objection_to(to, ["8.8.8.8", "10.0.0.7"], [])
    assert refused == "10.0.0.7 is not an address of the public internet"


def test_an_exception_does_not_excuse_another_address() -> None:
    entry = parse_allowed("127.0.0.1")
    assert entry is not None
    to = Destination("http", "x.example", 80, "/")
    assert objection_to(to, ["127.0.0.1", "10.0.0.1"], [entry]) is not None


@pytest.mark.parametrize(
    ("port", "is_so"),
    [(80, True), (443, True), (1024, True), (65535, True), (22, False), (25, False), (1023, False)],
)
def test_only_ports_of_the_web_and_those_that_anybody_may_have(port: int, is_so: bool) -> None:
    objection = objection_to(Destination("http", "8.8.8.8", port, "/"), ["8.8.8.8"], [])
    assert (objection is None) is is_so


@pytest.mark.parametrize(
    ("entry", "address", "port", "is_so"),
    [
        ("127.0.0.1:9000", "127.0.0.1", 9000, True),
        ("127.0.0.1:9000", "127.0.0.1", 9001, False),
        ("127.0.0.1:9000", "127.0.0.2", 9000, False),
        ("127.0.0.1", "127.0.0.1", 22, True),
        ("10.0.0.0/8", "10.9.8.7", 80, True),
        ("10.0.0.0/8:8080", "10.9.8.7", 80, False),
        ("[::1]:9000", "::1", 9000, True),
        ("[fd00::]/8", "fd12::1", 80, True),
        ("127.0.0.1:9000", "::ffff:127.0.0.1", 9000, False),
    ],
)
def test_an_exception_is_for_its_address_and_port_alone(
    entry: str, address: str, port: int, is_so: bool
) -> None:
    allowed = parse_allowed(entry)
    assert allowed is not None
    found = objection_to(Destination("http", "x.example", port, "/"), [address], [allowed])
    assert (found is None) is is_so


@pytest.mark.parametrize(
    "text", ["", "localhost:80", "127.0.0.1:0", "127.0.0.1:70000", "10.0.0.1/8", "::1:80", "*"]
)
def test_an_exception_that_is_no_address_is_none(text: str) -> None:
    assert parse_allowed(text) is None


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_the_line_that_a_refusal_prints_is_what_allows_it(address: str) -> None:
    to = Destination("http", "x.example", 9000, "/")
    line = how_to_allow(to, address)
    entry = parse_allowed(line.split('"')[1])
    assert line.startswith("webhooks.allow = [") and isinstance(entry, AllowedTarget)
    assert objection_to(to, [address], [entry]) is None


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("", "0 characters"),
        ("https://x.example/" + "a" * 2_000, "characters"),
        ("ftp://x.example/", "neither with https"),
        ("//x.example/", "neither with https"),
        ("https://ada@x.example/", "user or a password"),
        ("https://ada:pw@x.example/", "user or a password"),
        ("https://@x.example/", "user or a password"),
        ("https://x.example/a b", "a space"),
        ("https://x.example/\r\nHost: y", "control character"),
        ("https://x.example/\x00", "control character"),
        ("https://bücher.example/", "not ASCII"),
        ("https://x.example/#part", "fragment"),
        ("https:///path", "no name of a host"),
        ("https://x..y_-/", "no name of a host"),
        ("https://x.example:99999/", "cannot be read"),
        ("https://x.example:0/", "port 0"),
        ("https://[::1/", "cannot be read"),
        ("http://2130706433/", "neither a name nor an address"),
        ("http://0x7f.1/", "neither a name nor an address"),
        ("http://127.1/", "neither a name nor an address"),
        ("http://0177.0.0.1/", "neither a name nor an address"),
    ],
)
def test_what_is_no_url_to_send_to_is_said(url: str, wrong: str) -> None:
    found = destination_of(url)
    assert isinstance(found, str) and wrong in found


@pytest.mark.parametrize(
    ("url", "parts", "origin"),
    [
        ("https://x.example", ("https", "x.example", 443, "/"), "https://x.example"),
        ("https://X.Example:443/a?b=c", ("https", "x.example", 443, "/a?b=c"), "https://x.example"),
        ("http://x.example:8080/a/", ("http", "x.example", 8080, "/a/"), "http://x.example:8080"),
        ("http://8.8.8.8/", ("http", "8.8.8.8", 80, "/"), "http://8.8.8.8"),
        (
            "http://[2606:4700::1]:81/",
            ("http", "2606:4700::1", 81, "/"),
            "http://[2606:4700::1]:81",
        ),
    ],
)
def test_a_url_taken_apart(url: str, parts: tuple[str, str, int, str], origin: str) -> None:
    found = destination_of(url)
    assert isinstance(found, Destination)
    assert (found == parts) and found.origin == origin
