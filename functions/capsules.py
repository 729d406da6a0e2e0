"""Capsules over HTTP, for hosts: export, verify, preview, import, restore (docs/capsules.md).

What lives here: the bodies of these routes and the rows that serve them. What must never live here: what a Capsule
means. A body is bounded by the transport, so whole spaces above a few megabytes go by the command line; the error says
so. Nothing here keeps what is uploaded: only `import` and `restore` write, and nothing is ever fetched from a URL.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from core.capsule.identity import ImportWish
from core.capsule.stream import lines_of
from core.service.capsules import ExportAsk
from core.service.restoring import RestoreAsk
from functions.bootstrap import Services
from functions.kip import principal_of
from functions.routing import Call, Route, Routes

Document = dict[str, Any]
_Count = Annotated[int, Meta(ge=0)]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A body with no member that nobody knows."""


class ExportCapsuleInput(_Strict, frozen=True, kw_only=True):
    """What of a space goes out: the whole of it, or the commits after `since_seq`.

    as_of_seq: the snapshot's point. without: classifications that are withheld as redacted references.
    """

    since_seq: _Count | UnsetType = UNSET
    as_of_seq: _Count | UnsetType = UNSET
    include_schema: bool = False
    include_blobs: bool = True
    sign: bool = True
    without: tuple[str, ...] = ()


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
    asked = msgspec.structs.asdict(call.body)
    ask = ExportAsk(**{name: value for name, value in asked.items() if value is not UNSET})
    return found.capsules.export(call.space, principal_of(call.caller, readonly=False), ask)


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
    # It is verified as the artifact it is before its lines are read: `lines_of` takes it apart without a look.
    found.capsules.verify(body.capsule)
    return found.restores.restore(
        call.caller, call.space, lambda: lines_of(body.capsule), ask, lambda _, __: None
    )


MANAGES: Final[Routes] = {
    "export_capsule": Route(
        admit="manage",
        summary="Export a space, or what changed in it since a point, as a signed Capsule.",
        call=_export,
        body=ExportCapsuleInput,
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
