"""Where a model may be reached."""

from __future__ import annotations

import ipaddress
import socket
import threading

import httpx
import pytest

from core.models.chat import ModelFault
from infra.models.reach import GuardedTransport, Reach, is_private, is_public, reach_of

METADATA = ["169.254.169.254", "fd00:ec2::254", "fe80::1"]
OURS = ["127.0.0.1", "::1", "10.0.0.1", "172.16.5.4", "192.168.1.1", "fd12::1"]
ODD = ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "240.0.0.1", "255.255.255.255", "100.64.0.1", "192.0.2.1"]
INSIDE = [
    "::ffff:169.254.169.254",
    "::ffff:10.0.0.1",
    "2002:a9fe:a9fe::1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::7f00:1",
]
GLOBAL = ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"]


@pytest.mark.parametrize("text", [*METADATA, *OURS, *ODD, *INSIDE, "fec0::1", "4000::1", "::5db8:d822"])
def test_what_is_not_public(text: str) -> None:
    """Nor is an address that only leads to one that is not."""
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", GLOBAL)
def test_what_is_public(text: str) -> None:
    """Global addresses, and those that lead to one; none of them is private."""
    assert is_public(ipaddress.ip_address(text))
    assert not is_private(ipaddress.ip_address(text))


def test_private_addresses_are_this_machine_and_its_networks() -> None:
    """A metadata service is on neither."""
    assert [text for text in [*OURS, *METADATA] if is_private(ipaddress.ip_address(text))] == OURS
    assert not any(is_private(ipaddress.ip_address(text)) for text in ODD if text != "192.0.2.1")


@pytest.mark.parametrize(
    ("url", "trusted", "reach"),
    [
        ("https://api.openai.com/v1", True, "any"),
        ("https://api.openai.com/v1", False, "public"),
        ("https://10.0.0.1/v1", True, "any"),
        ("http://127.0.0.1:8080/v1", True, "private"),
        ("http://ollama:11434/v1", True, "private"),
        ("http://[::1]:8080", True, "private"),
        ("https://93.184.216.34/v1", False, "public"),
    ],
)
def test_how_far_a_url_reaches(url: str, trusted: bool, reach: Reach) -> None:
    """An operator may go without TLS where nobody else can listen."""
    assert reach_of(url, trusted=trusted) == reach


@pytest.mark.parametrize(
    ("url", "trusted"),
    [
        ("http://api.openai.com:99999/v1", True),
        ("http://93.184.216.34/v1", True),
        ("http://169.254.169.254/latest", True),
        ("https://:8080", True),
        ("http://api.example/v1", False),
        ("https://127.0.0.1/v1", False),
        ("https://169.254.169.254/v1", False),
        ("https://[::ffff:10.0.0.1]/v1", False),
        ("https://localhost/v1", False),
        ("https://LOCALHOST./v1", False),
        ("https://db.internal/v1", False),
        ("https://printer.local/v1", False),
        ("https://intranet/v1", False),
        ("https://x:0/v1", False),
    ],
)
def test_what_reaches_nowhere(url: str, trusted: bool) -> None:
    """Refused when it is set, without asking any name server."""
    with pytest.raises(ValueError):
        reach_of(url, trusted=trusted)


class Seen(httpx.BaseTransport):
    """Keeps requests and answers nothing of note."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(200, text="ok")


def sent(reach: Reach, url: str, *addresses: str) -> httpx.Request:
    inner = Seen()
    guard = GuardedTransport(reach, inner=inner, resolve=lambda host, port: list(addresses))
    with httpx.Client(transport=guard) as client:
        assert client.post(url, content=b"x").text == "ok"
    return inner.requests[0]


def test_it_connects_to_the_address_it_checked() -> None:
    """The name stays in Host and in TLS, so the certificate is still the name's; a second look-up cannot cheat."""
    request = sent("public", "https://models.example:8443/v1/x?y=1", "93.184.216.34", "2606:2800:220:1::1")

    assert str(request.url) == "https://93.184.216.34:8443/v1/x?y=1"
    assert request.headers["host"] == "models.example:8443"
    assert request.extensions["sni_hostname"] == "models.example"


def test_an_operators_https_is_not_rewritten() -> None:
    """It goes where the operator says."""
    assert str(sent("any", "https://models.example/v1").url) == "https://models.example/v1"


@pytest.mark.parametrize(
    ("reach", "addresses"),
    [
        ("public", ["10.0.0.1"]),
        ("public", ["93.184.216.34", "169.254.169.254"]),
        ("public", ["::ffff:127.0.0.1"]),
        ("public", []),
        ("public", ["no address"]),
        ("private", ["93.184.216.34"]),
        ("private", ["169.254.169.254"]),
        ("private", ["fe80::1%eth0"]),
    ],
)
def test_a_name_that_leads_elsewhere_is_not_followed(reach: Reach, addresses: list[str]) -> None:
    """One bad address among good ones is enough; it is final, not something to try again."""
    scheme = "https" if reach == "public" else "http"

    with pytest.raises(ModelFault) as caught:
        sent(reach, f"{scheme}://models.example/v1", *addresses)

    assert caught.value.kind == "bad_request"


def test_a_name_nobody_knows_is_a_failed_connection() -> None:
    """Which may be tried again."""

    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror("no such name")

    guard = GuardedTransport("public", inner=Seen(), resolve=unknown)
    with httpx.Client(transport=guard) as client, pytest.raises(httpx.ConnectError):
        client.post("https://models.example/")


def test_a_private_name_over_a_real_socket() -> None:
    """The whole way: resolved, checked, connected, answered."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi")

        thread = threading.Thread(target=answer)
        thread.start()
        guard = GuardedTransport("private")
        with httpx.Client(transport=guard, trust_env=False) as client:
            assert client.get(f"http://localhost:{listener.getsockname()[1]}/").text == "hi"
        thread.join(5)
