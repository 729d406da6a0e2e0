"""Where a model may be reached: which addresses a request may go to, checked at the moment it connects.

What lives here: the guard against being sent to places only we can reach (SSRF). What must never live here: a wire.

A name proves nothing, for it may lead to a public address when it is looked at and to a private one when it is
used. So the guard resolves the name itself, refuses if **any** of its addresses is not allowed, and connects to one
of the addresses it checked; TLS still verifies the certificate against the name. No redirect is followed and no
proxy of the environment is used, as both would go round the guard.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Final, Literal

import httpx

from core.models.chat import ModelFault

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Sequence[str]]
Reach = Literal["any", "public", "private"]
"""any: TLS to wherever the operator says. public: TLS to global addresses only, for an address that a space's
owner gave. private: also without TLS, but then only this machine and private networks."""

_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_UNICAST: Final = ipaddress.ip_network("2000::/3")  # all of IPv6 that is given out for use on the Internet
_EC2: Final = ipaddress.ip_network("fd00:ec2::/32")  # AWS's metadata service over IPv6


class Unreachable(ModelFault):
    """The address is not one this request may go to."""

    def __init__(self, message: str) -> None:
        super().__init__("bad_request", message)


def reach_of(url: str, *, trusted: bool) -> Reach:
    """How far a base URL may reach.

    Raises:
        ValueError: it cannot be used at all, as far as its text tells.
    """
    try:
        parsed = httpx.URL(url)
        port = parsed.port
    except (httpx.InvalidURL, ValueError) as error:
        raise ValueError("the base URL is no URL") from error
    if not parsed.host or (port is not None and not 0 < port < 65_536):
        raise ValueError("the base URL names no host and port")
    literal = _literal(parsed.host)
    if parsed.scheme == "https" and trusted:
        return "any"
    if parsed.scheme == "http" and trusted:
        if literal is not None and not is_private(literal):
            raise ValueError("http without TLS reaches loopback and private addresses only; use https")
        return "private"
    if parsed.scheme != "https":
        raise ValueError("the base URL must begin with https://")
    if (literal is not None and not is_public(literal)) or _is_local_name(parsed.host):
        raise ValueError("the base URL must lead to a public address")
    return "public"


def is_public(address: Address) -> bool:
    """Whether an address, and the IPv4 address inside it if there is one, is global."""
    inner = _inner(address)
    if inner is not None:
        return is_public(inner)
    if address.version == 6 and address not in _UNICAST:
        return False  # site-local addresses, for one, which Python takes for global
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def is_private(address: Address) -> bool:
    """Whether an address is this machine's or a private network's; link-local ones (metadata services) are not."""
    inner = _inner(address)
    if inner is not None:
        return is_private(inner)
    if address.is_loopback:
        return True
    if address.is_link_local or address.is_multicast or address.is_unspecified or address.is_reserved:
        return False
    return address.is_private and address not in _EC2


def _inner(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one leads to: mapped, 6to4, Teredo or NAT64."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def _is_local_name(host: str) -> bool:
    name = host.rstrip(".").lower()
    return "." not in name or name.endswith((".localhost", ".local", ".internal", ".home.arpa"))


def look_up(host: str, port: int) -> list[str]:
    """The addresses of a name, as the machine resolves it."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def tls() -> ssl.SSLContext:
    """What verifies certificates; made once and shared, for making it takes a while."""
    return httpx.create_ssl_context(trust_env=False)


class GuardedTransport(httpx.BaseTransport):
    """Sends requests to one host, and only to addresses of it that `reach` allows.

    One host, because connections are kept by address: on one that was verified for a name, another name that leads to
    the same address must never ride.

    Args:
        reach: which.
        inner: what really sends; httpx's own over TLS with verification if omitted.
        resolve: names to addresses.
    """

    def __init__(
        self, reach: Reach, *, inner: httpx.BaseTransport | None = None, resolve: Resolve = look_up
    ) -> None:
        self._reach = reach
        self._inner = inner or httpx.HTTPTransport(trust_env=False, retries=0)
        self._resolve = resolve
        self._host: str | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Check where the request goes, and send it there."""
        host, port = request.url.host, request.url.port or (443 if request.url.scheme == "https" else 80)
        if self._host is None:
            self._host = host
        if self._host != host:
            raise Unreachable("a connection to one host serves no other")
        if self._reach == "any":
            return self._inner.handle_request(request)
        address = self._checked(host, port)
        pinned = httpx.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,  # with the name in Host
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": host},
        )
        return self._inner.handle_request(pinned)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()

    def _checked(self, host: str, port: int) -> str:
        literal = _literal(host)
        try:
            found = [str(literal)] if literal is not None else list(self._resolve(host, port))
        except OSError as error:
            raise httpx.ConnectError(f"the name cannot be resolved: {type(error).__name__}") from error
        allowed = is_public if self._reach == "public" else is_private
        try:
            addresses = [ipaddress.ip_address(each.partition("%")[0]) for each in found]
        except ValueError as error:
            raise Unreachable("the model's host has an address we cannot read") from error
        if not addresses or not all(allowed(each) for each in addresses):
            wanted = "public addresses" if self._reach == "public" else "loopback or private addresses"
            raise Unreachable(f"the model's host must lead to {wanted} only")
        return str(addresses[0])
