"""The OpenAPI 3.1 document, made of the route tables and the msgspec types in them.

Run as a program it prints the document; `functions/static/openapi.json` is what it printed last, and a test
fails when the two differ. So the read path serves a file and imports no other function.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Final

import msgspec

from core.model.elements import Json
from functions.catalog import ROUTES
from functions.documents import DESCRIPTION, NAME
from functions.endpoints import ENDPOINTS, Endpoint, is_graymatter
from functions.failures import STATUS
from functions.routing import Route
from functions.settings import VERSION

_REF: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"{(\w+)\+?}")
# What any caller may meet on a route of a class, besides its answer.
_ANYWHERE: Final = (400, 413, 429, 500, 501, 503)
_REFUSALS: Final = {"open": (), "public": (401, 403, 404), "read": (401, 403, 404)}
_OTHERS: Final = (401, 403, 404, 409)
_MEANING: Final = {
    400: "The request is not one this route takes; `data.details` names the place.",
    401: "Authentication failed; the reason is not told.",
    403: "The credential is good for this space, but not for this.",
    404: "There is no such space, conversation or element.",
    409: "What stands there contradicts the request, or another run holds the space.",
    413: "The body is too large.",
    429: "Too many requests; wait as long as Retry-After says.",
    500: "A fault of ours; the request id finds it in the log.",
    501: "This deployment does not have what the request asks for.",
    503: "Not now; wait as long as Retry-After says.",
}


# What a route with a body of its own (KIP) takes besides the envelope and a bare text.
_SHORT: Final = {
    "type": "object",
    "description": "The short form: a command or operations, and any member of the envelope but `kip`.",
    "properties": {
        "command": {"type": "string"},
        "parameters": {"type": "object"},
        "dry_run": {"type": "boolean"},
    },
}


class ErrorData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a program needs to react to a failure."""

    code: str
    category: str
    hint: str
    retry: dict[str, Json]
    details: dict[str, Json] | None = None


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """What was wrong, in plain words, and what to do."""

    message: str
    data: ErrorData


class ErrorResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The body of every answer that is no success, always JSON."""

    error: ErrorBody


class BareError(msgspec.Struct, frozen=True, kw_only=True):
    """An error of GrayMatter's own paths."""

    error: str


_PREFER: Final = {
    "name": "Prefer",
    "in": "header",
    "schema": {"type": "string"},
    "description": "respond-async: answer 202 at once, and poll for the answer.",
}
_ACCEPTED: Final = {
    "description": "The answer comes later: poll the conversation that Location names.",
    "headers": {
        "Location": {"schema": {"type": "string"}},
        "Preference-Applied": {"schema": {"type": "string"}},
    },
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {"result": {"$ref": "#/components/schemas/AgentOutput"}},
                "required": ["result"],
            }
        }
    },
}


def document() -> dict[str, Any]:
    """The whole document, as JSON values."""
    types: list[Any] = [ErrorResponse, BareError]
    for route in ROUTES.values():
        types += [kind for kind in (route.body, route.query, route.response) if kind is not None]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    schema_of = dict(zip(map(repr, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for name, route in ROUTES.items():
        endpoint = ENDPOINTS[name]
        path = paths.setdefault(endpoint.path.replace("+}", "}"), {})
        path[endpoint.method.lower()] = _operation(name, endpoint, route, schema_of, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": NAME, "version": VERSION, "description": DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A CWT (COSE_Sign1, Ed25519) in base64url, or a space token (ST...).",
                }
            },
        },
        "x-error-status": STATUS,
    }


def _operation(
    name: str, endpoint: Endpoint, route: Route, schema_of: dict[str, Any], components: dict[str, Any]
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": route.summary,
        "description": f"Admission: {route.admit} (docs/security.md).",
        "parameters": [
            {"name": each, "in": "path", "required": True, "schema": _path_schema(each)}
            for each in _PARAMETER.findall(endpoint.path)
        ],
        "responses": {"200": _success(route, schema_of), **_failures(endpoint, route, schema_of)},
        "security": {"open": [], "public": [{}, {"bearer": []}]}.get(route.admit, [{"bearer": []}]),
    }
    if route.deferrable:
        operation["parameters"].append(_PREFER)
        operation["responses"]["202"] = _ACCEPTED
    if route.slow:
        whole = operation["responses"]["200"]
        operation["responses"]["202"] = {**whole, "description": "It works: what there is of it; ask again."}
    if route.query is not None:
        operation["parameters"] += _query_parameters(schema_of[repr(route.query)], components)
    if route.body is not None:
        schema = schema_of[repr(route.body)]
        media = {"schema": {"anyOf": [schema, {"type": "string"}, _SHORT]} if route.own_body else schema}
        content = {"application/json": media, "application/cbor": media}
        if route.text_in is not None:
            content["text/markdown"] = {"schema": {"type": "string"}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _path_schema(name: str) -> dict[str, Any]:
    if name == "space":
        return {"type": "string", "pattern": "^[a-z0-9_]{1,64}$"}
    return {"type": "string"} if name != "id" else {"type": "integer", "minimum": 1}


def _query_parameters(schema: dict[str, Any], components: dict[str, Any]) -> list[dict[str, Any]]:
    struct = components[schema["$ref"].rsplit("/", 1)[1]]
    required = struct.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": each}
        for name, each in struct["properties"].items()
    ]


def _success(route: Route, schema_of: dict[str, Any]) -> dict[str, Any]:
    if route.media_type is not None:
        plain = {"type": "string"} if route.response is None else schema_of[repr(route.response)]
        schema = (
            {"type": "object"} if route.media_type == "application/json" and route.response is None else plain
        )
        kinds = (route.media_type, "application/cbor") if route.own_body else (route.media_type,)
        return {"description": route.summary, "content": {kind: {"schema": schema} for kind in kinds}}
    envelope = {
        "type": "object",
        "properties": {"result": schema_of[repr(route.response)], "next_cursor": {"type": "string"}},
        "required": ["result"],
    }
    return {
        "description": route.summary,
        "content": {
            "application/json": {"schema": envelope},
            "application/cbor": {"schema": envelope},
            "text/markdown": {"schema": {"type": "string"}},
        },
    }


def _failures(endpoint: Endpoint, route: Route, schema_of: dict[str, Any]) -> dict[str, Any]:
    told = BareError if is_graymatter(endpoint.path) else ErrorResponse
    content = {"application/json": {"schema": schema_of[repr(told)]}}
    statuses = sorted({*_ANYWHERE, *_REFUSALS.get(route.admit, _OTHERS)})
    return {str(status): {"description": _MEANING[status], "content": content} for status in statuses}


def text() -> str:
    """The document as the file holds it."""
    encoded = msgspec.json.encode(document(), order="sorted")
    return msgspec.json.format(encoded, indent=2).decode("utf-8") + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
