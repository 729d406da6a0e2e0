"""The documents anybody may read: what the service is, how to use it, its interface, its icon."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from core.protocol.http_types import ServiceInfo
from functions.http import HttpResponse
from functions.model_settings import public_names
from functions.settings import VERSION, Settings

NAME: Final = "noema"
DESCRIPTION: Final = (
    "Memory for AI agents: keeps who said what, on what evidence, when it was true and when it was learned; "
    "answers with what is currently believed, and the receipts. GET /SKILL.md says how to use it."
)
_STATIC: Final = Path(__file__).parent / "static"


@cache
def _document(name: str, media_type: str) -> HttpResponse:
    headers = {"content-type": media_type, "cache-control": "public, max-age=300"}
    return HttpResponse(status=200, headers=headers, body=(_STATIC / name).read_bytes())


def skill() -> HttpResponse:
    """How an agent uses this service, in Markdown."""
    return _document("SKILL.md", "text/markdown; charset=utf-8")


def openapi() -> HttpResponse:
    """The OpenAPI document that `functions.openapi` made of the route tables; a test holds it to them."""
    return _document("openapi.json", "application/json")


def favicon() -> HttpResponse:
    """An icon for browser tabs."""
    return _document("favicon.svg", "image/svg+xml")


def touch_icon() -> HttpResponse:
    """The same icon as a picture, for home screens."""
    return _document("apple-touch-icon.webp", "image/webp")


def service_info(settings: Settings) -> HttpResponse:
    """Name, version, models and embedder; plain JSON whatever `Accept` says (contract §1.5)."""
    info = ServiceInfo(
        name=NAME,
        version=VERSION,
        sharding=settings.sharding,
        description=DESCRIPTION,
        models=public_names(settings.models),
        embedder=settings.embedder.public_name,
    )
    headers = {"content-type": "application/json", "cache-control": "no-store"}
    return HttpResponse(status=200, headers=headers, body=msgspec.json.encode(info))
