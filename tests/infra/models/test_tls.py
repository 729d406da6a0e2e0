"""TLS: the certificate is checked against the name, although the connection goes to an address we chose."""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from core.models.chat import ModelFault
from core.models.choice import ModelChoice
from infra.models.factory import RealProviders
from infra.models.reach import GuardedTransport
from tests.doubles import CountingEntropy, FakeClock
from tests.infra.models.wire import Wire

ANSWER = b'{"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]}'


def certificate(folder: Path, name: str) -> Path:
    """A self-signed certificate for a name, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.2"))]
    begin = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begin)
        .not_valid_after(begin + dt.timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


def read_request(connection: socket.socket) -> None:
    """All of a request: a connection that is closed with some of it unread is reset, and the client asks again."""
    data, wanted = b"", None
    while wanted is None or len(data) < wanted:
        piece = connection.recv(65_536)
        if not piece:
            return
        data += piece
        head = data.partition(b"\r\n\r\n")[0]
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if length is not None and len(head) < len(data):
            wanted = len(head) + 4 + int(length[1])


@contextmanager
def serving(pem: Path) -> Iterator[tuple[int, list[str | None]]]:
    """A TLS server on loopback; its port, and the names that clients asked it for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    asked: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(plain, server_side=True) as connection:
                    connection.settimeout(5)
                    read_request(connection)
                    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(ANSWER)}\r\nconnection: close\r\n\r\n"
                    connection.sendall(head.encode() + ANSWER)
            except OSError:
                plain.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], asked
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def asking(port: int, trusted: Path | None) -> Wire:
    """A model at `models.example`, whose name leads to the server; with the guard and TLS as in service."""
    verify = ssl.create_default_context(cafile=str(trusted)) if trusted else True
    inner = httpx.HTTPTransport(verify=verify, trust_env=False)
    guard = GuardedTransport("private", inner=inner, resolve=lambda host, port: ["127.0.0.1"])
    wire = Wire(f"openai:m@https://models.example:{port}/v1")
    wire.provider.handle_request = guard.handle_request  # type: ignore[method-assign]
    return wire


def test_the_certificate_of_the_name_is_accepted(tmp_path: Path) -> None:
    """And the server is told the name, not the address."""
    pem = certificate(tmp_path, "models.example")
    with serving(pem) as (port, asked):
        assert asking(port, pem).ask().text == "Hi."

    assert asked == ["models.example"]


def test_the_certificate_of_another_name_is_not(tmp_path: Path) -> None:
    """Whoever has one for a host of their own cannot stand in for the model's."""
    pem = certificate(tmp_path, "elsewhere.example")
    with serving(pem) as (port, _), pytest.raises(ModelFault) as caught:
        asking(port, pem).ask()

    assert caught.value.kind == "unavailable"


def test_a_connection_verified_for_one_name_serves_no_other(tmp_path: Path) -> None:
    """Two names may lead to one address, and connections are kept by address."""
    pem = certificate(tmp_path, "models.example")
    with serving(pem) as (port, _):
        wire = asking(port, pem)
        assert wire.ask().text == "Hi."
        other = Wire(f"openai:m@https://other.example:{port}/v1")
        other.provider.handle_request = wire.provider.handle_request  # type: ignore[method-assign]
        with pytest.raises(ModelFault, match="no other"):
            other.ask()


def test_each_model_has_connections_of_its_own() -> None:
    """So the rule above never stands in the way of two models; what verifies certificates is shared."""
    providers = RealProviders(FakeClock(), CountingEntropy(), lambda: None, may_spend=True)  # type: ignore[arg-type, return-value]
    choices = [ModelChoice("openai", "m", f"https://{name}.example/v1") for name in ("one", "two")]

    one, two = (
        providers.model(choice, lambda: None, trusted=False)._http._client._transport for choice in choices
    )  # type: ignore[attr-defined]

    assert one is not two
    assert one._inner is not two._inner
    assert one._inner._pool._ssl_context is two._inner._pool._ssl_context
    assert one._inner._pool._ssl_context.verify_mode == ssl.CERT_REQUIRED


def test_a_certificate_that_nobody_vouches_for_is_not(tmp_path: Path) -> None:
    """Verification is never off."""
    pem = certificate(tmp_path, "models.example")
    with serving(pem) as (port, _), pytest.raises(ModelFault) as caught:
        asking(port, None).ask()

    assert caught.value.kind == "unavailable"
