"""Capsules over HTTP, for hosts: export, verify, preview, import, restore (docs/capsules.md).

What lives here: the bodies of these routes and the rows that serve them. What must never live here: what a Capsule
means. A body is bounded by the transport, so whole spaces above a few megabytes go by the command line; the error says
so. Nothing here keeps what is uploaded: only `import` and `restore` write, and nothing is ever fetched from a URL.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from core.protocol.capsule_types import ExportAsk, ImportWish, RestoreAsk
from core.service.callers import principal_of
from functions.bootstrap import Services
from functions.routing import Call, Route, Routes

Document = dict[str, Any]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A body with no member that nobody knows."""


class VerifyCapsuleInput(_Strict, frozen=True, kw_only=True):
    """A Capsule."""

    capsule: Document


class PreviewCapsuleInput(_Strict, frozen=True, kw_only=True):
    """A Capsule and how it would be imported; see docs/capsules.md."""

    capsule: Document
    mode: Literal["merge", "isolate"] = "merge"
    mappings: dict[str, str] = {}
    trust_canonical_ids: bool = False
    partial: bool = False
    lifecycle: Literal["ignore", "follow"] = "ignore"


class ImportCapsuleInput(PreviewCapsuleInput, frozen=True, kw_only=True):
    """As a preview, with the digest of the plan that was shown."""

    plan_digest: str | UnsetType = UNSET


class RestoreCapsuleInput(_Strict, frozen=True, kw_only=True):
    """A backup, and whose the new space is."""

    capsule: Document
    owner: Annotated[str, Meta(min_length=1, max_length=256)]
    tier: Annotated[int, Meta(ge=0, le=14)] | UnsetType = UNSET
    accept_unsigned: bool = False
    activate_schema: bool = False


def _export(found: Services, call: Call) -> Document:
    return found.capsules.export(call.space, principal_of(call.caller, readonly=False), call.body)


def _verify(found: Services, call: Call) -> Document:
    found.spaces.head(call.space)
    return found.capsules.verify(call.body.capsule)


def _wish(body: PreviewCapsuleInput) -> ImportWish:
    return ImportWish(**{name: getattr(body, name) for name in ImportWish.__struct_fields__})


def _preview(found: Services, call: Call) -> Document:
    who = principal_of(call.caller, readonly=False)
    return found.capsules.preview(call.space, who, call.body.capsule, _wish(call.body))


def _import(found: Services, call: Call) -> Document:
    plan = call.body.plan_digest
    return found.capsules.run(
        call.space,
        principal_of(call.caller, readonly=False),
        call.body.capsule,
        _wish(call.body),
        deadline=call.deadline,
        plan_digest=None if plan is UNSET else plan,
        key=call.idempotency_key,
    )


def _restore(found: Services, call: Call) -> Document:
    body = call.body
    ask = RestoreAsk(
        owner=body.owner,
        tier=None if body.tier is UNSET else body.tier,
        accept_unsigned=body.accept_unsigned,
        activate_schema=body.activate_schema,
    )
    return found.restores.restore_artifact(call.caller, call.space, body.capsule, ask)


MANAGES: Final[Routes] = {
    "export_capsule": Route(
        admit="manage",
        summary="Export a space, or what changed in it since a point, as a signed Capsule.",
        call=_export,
        body=ExportAsk,
        response=Document,
    ),
    "verify_capsule": Route(
        admit="manage",
        summary="Whether a Capsule is what was signed; nothing is kept and nobody trusted.",
        call=_verify,
        body=VerifyCapsuleInput,
        response=Document,
    ),
    "preview_capsule": Route(
        admit="manage",
        summary="What an import would do to the space now; nothing is written.",
        call=_preview,
        body=PreviewCapsuleInput,
        response=Document,
    ),
    "import_capsule": Route(
        admit="manage",
        summary="Import a Capsule in one transaction, if it still does what the preview said.",
        call=_import,
        body=ImportCapsuleInput,
        response=Document,
    ),
    "restore_capsule": Route(
        admit="admin",
        summary="Make a space out of a backup.",
        call=_restore,
        body=RestoreCapsuleInput,
        response=Document,
    ),
}
