"""The environment, read once into one frozen value, or refused by the name of the variable that is wrong.

Nothing is read when this module is imported. Settings are data; what is built from them is `bootstrap`'s
business.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec

from core.protocol.http_types import MAX_TIER
from functions.embedder_settings import EmbedderSetting, read_embedder
from functions.keys import PublicKey, parse_public_key
from functions.model_settings import ModelSettings, read_models

VERSION: Final = "0.1.0"

Store = Literal["memory", "embedded", "aws"]
_STORES: Final[dict[str, Store]] = {"memory": "memory", "embedded": "embedded", "aws": "aws"}
FactsTokenizer = Literal["unicode", "ascii", "ascii-stem"]  # as `core.facts.tokens`, which costs an import
_TOKENIZERS: Final[dict[str, FactsTokenizer]] = {
    "unicode": "unicode",
    "ascii": "ascii",
    "ascii-stem": "ascii-stem",
}


class SettingsError(Exception):
    """A variable of the environment has a value that cannot be used; the message names it."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How this process is configured.

    tenant_keys admit to spaces; admin_keys admit to `/admin`, and only there. signers: keys of other deployments by
    name, whose signatures on Capsules are known; a name is no trust. insecure_local is true only
    when it was asked for, the listener is on loopback, and this is not a deployed function.
    """

    store: Store = "memory"
    data_dir: str = ".noema"
    table: str = ""
    bucket: str = ""
    queue_url: str = ""
    tenant_keys: tuple[PublicKey, ...] = ()
    admin_keys: tuple[PublicKey, ...] = ()
    signers: tuple[tuple[str, bytes], ...] = ()
    managers: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    mcp_hosts: tuple[str, ...] = ()
    mcp_origins: tuple[str, ...] = ()
    mcp_create_tier: int | None = None  # of spaces that MCP brings about; None: it brings about none
    insecure_local: bool = False
    sharding: int = 0
    models: ModelSettings = ModelSettings()
    embedder: EmbedderSetting = EmbedderSetting()
    formation_section: str = ""
    facts_tokenizer: FactsTokenizer = "unicode"

    @property
    def locked(self) -> bool:
        """Whether nobody can be admitted: no key is configured and nobody allowed to go without."""
        return not (self.tenant_keys or self.admin_keys or self.insecure_local)


def load() -> Settings:
    """The settings of this process.

    Raises:
        SettingsError: a variable is wrong or missing.
    """
    return read_settings(os.environ)  # noqa: TID251 - the one place that reads the environment


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Settings from a mapping of variables; pure, so that tests need no environment."""
    store = _STORES.get(environ.get("NOEMA_STORE", "memory"))
    if store is None:
        raise SettingsError(f"NOEMA_STORE is {environ['NOEMA_STORE']!r}; it must be memory, embedded or aws")
    if store == "aws":
        for name in ("NOEMA_TABLE", "NOEMA_BUCKET", "NOEMA_QUEUE_URL"):
            if not environ.get(name):
                raise SettingsError(f"{name} is not set; with NOEMA_STORE=aws it must name the resource")
    keys = _each(environ, "ED25519_PUBKEYS", parse_public_key)
    admin_keys = _each(environ, "NOEMA_ADMIN_PUBKEYS", parse_public_key)
    return Settings(
        store=store,
        data_dir=environ.get("NOEMA_DATA_DIR", ".noema"),
        table=environ.get("NOEMA_TABLE", ""),
        bucket=environ.get("NOEMA_BUCKET", ""),
        queue_url=environ.get("NOEMA_QUEUE_URL", ""),
        tenant_keys=keys,
        admin_keys=admin_keys,
        signers=_each(environ, "NOEMA_SIGNERS", _signer),
        managers=_each(environ, "MANAGERS", str),
        cors_origins=_each(environ, "CORS_ORIGINS", _origin),
        mcp_hosts=_each(environ, "MCP_HTTP_ALLOWED_HOSTS", str.lower),
        mcp_origins=_each(environ, "MCP_HTTP_ALLOWED_ORIGINS", _origin),
        mcp_create_tier=_create_tier(environ),
        insecure_local=not (keys or admin_keys) and _insecure_local(environ),
        sharding=_shard(environ),
        models=_models(environ),
        embedder=_embedder(environ),
        formation_section=environ.get("NOEMA_FORMATION_SECTION", ""),
        facts_tokenizer=_tokenizer(environ.get("NOEMA_FACTS_TOKENIZER", "").strip() or "unicode"),
    )


def _tokenizer(name: str) -> FactsTokenizer:
    if name not in _TOKENIZERS:
        raise SettingsError(f"NOEMA_FACTS_TOKENIZER must be one of {', '.join(_TOKENIZERS)}")
    return _TOKENIZERS[name]


def _embedder(environ: Mapping[str, str]) -> EmbedderSetting:
    try:
        return read_embedder(environ)
    except ValueError as error:
        raise SettingsError(str(error)) from error


def _models(environ: Mapping[str, str]) -> ModelSettings:
    try:
        return read_models(environ)
    except ValueError as error:
        raise SettingsError(str(error)) from error


def _each(environ: Mapping[str, str], name: str, parse: Callable[[str], Any]) -> tuple[Any, ...]:
    """A comma list; one bad entry fails the whole start, for a key left out by a typo is a locked door."""
    out = []
    for place, entry in enumerate(environ.get(name, "").split(","), start=1):
        if entry.strip():
            try:
                out.append(parse(entry.strip()))
            except ValueError as error:
                raise SettingsError(f"{name}, entry {place}: {error}") from error
    return tuple(out)


def _origin(text: str) -> str:
    if text != "*" and (not text.startswith(("http://", "https://")) or text.count("/") != 2):
        raise ValueError("an origin looks like https://example.org, without a path, or is *")
    return text.lower()


def _signer(text: str) -> tuple[str, bytes]:
    """A name and the Ed25519 key whose signatures it stands for: `backups=ed25519:...`, as proofs spell it."""
    name, _, key = text.partition("=")
    if not name.strip() or not key:
        raise ValueError("a signer is written as name=key")
    return name.strip(), parse_public_key(key.strip().removeprefix("ed25519:")).x


def _create_tier(environ: Mapping[str, str]) -> int | None:
    """The size class of spaces that come to be over MCP, where they may."""
    wish = environ.get("MCP_HTTP_AUTO_CREATE_SPACE", "0").strip().lower()
    if wish not in ("", "0", "1", "false", "true"):
        raise SettingsError("MCP_HTTP_AUTO_CREATE_SPACE must be 0 or 1")
    if wish not in ("1", "true"):
        return None
    text = environ.get("MCP_HTTP_AUTO_CREATE_TIER", "1").strip()
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_TIER):
        raise SettingsError(f"MCP_HTTP_AUTO_CREATE_TIER must be a whole number from 0 to {MAX_TIER}")
    return int(text)


def _shard(environ: Mapping[str, str]) -> int:
    text = environ.get("SHARDING_IDX", "0")
    if not (text.isascii() and text.isdigit() and int(text) < 2**32):
        raise SettingsError("SHARDING_IDX must be a whole number from 0 to 4294967295")
    return int(text)


def _insecure_local(environ: Mapping[str, str]) -> bool:
    """No keys needed: only when told so, and only where no other machine can reach us (contract §2.5)."""
    wish = environ.get("ALLOW_INSECURE_LOCAL", "0").lower()
    if wish not in ("", "0", "1", "false", "true"):
        raise SettingsError("ALLOW_INSECURE_LOCAL must be 0 or 1")
    if wish not in ("1", "true"):
        return False
    deployed = bool(environ.get("AWS_LAMBDA_FUNCTION_NAME")) and not environ.get("AWS_SAM_LOCAL")
    host = environ.get("NOEMA_ENDPOINT_HOST", "")
    if deployed or not (is_loopback(host) or environ.get("AWS_SAM_LOCAL")):
        raise SettingsError(
            "ALLOW_INSECURE_LOCAL is set, but the listener is not on loopback "
            "(NOEMA_ENDPOINT_HOST must be 127.0.0.1, ::1 or localhost); configure ED25519_PUBKEYS instead"
        )
    return True


def is_loopback(host: str) -> bool:
    """Whether a host name or address (no port) reaches only this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
