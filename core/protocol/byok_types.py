"""The shapes of a space's own model, as the REST contract names them.

What lives here: structs and their bounds. What must never live here: a way for a key to come out: it goes in, and the
answer has no member for it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

ModelFamily = Literal["anthropic", "openai"]
ApiKey = Annotated[str, Meta(min_length=8, max_length=1024, pattern=r"^[!-~]+$")]
Tokens = Annotated[int, Meta(ge=0, le=10_000_000)]


class ByokInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A space's own model, or a change of it: an absent member stays as it is.

    family: `anthropic`, or `openai` for anything that speaks chat completions. api_base: where; https and public.
    api_key: null takes the whole setting away. It must come along whenever family or api_base change, so that a
    stored key never goes to another host than it was given for. context_window, max_output: tokens, 0 for what is
    known of the model. bearer_auth: send the key as a bearer token. disabled: keep it all, and do not use it.
    """

    family: ModelFamily | UnsetType = UNSET
    model: Annotated[str, Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    api_base: Annotated[str, Meta(max_length=512)] | UnsetType | None = UNSET
    api_key: ApiKey | UnsetType | None = UNSET
    disabled: bool | UnsetType = UNSET
    label: Annotated[str, Meta(max_length=128)] | UnsetType | None = UNSET
    bearer_auth: bool | UnsetType = UNSET
    context_window: Tokens | UnsetType = UNSET
    max_output: Tokens | UnsetType = UNSET
    effort: Any = None  # not offered: refused by name
    stream: bool = False  # as above; text is streamed where a caller listens


class ByokView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A space's own model without its key. `configured` is false, and nothing else is there, where it has none.

    api_key_end: the last four characters, to recognise a long key by. updated_at: Unix ms.
    """

    configured: bool
    family: ModelFamily | None = None
    model: str | None = None
    api_base: str | None = None
    api_key_end: str | None = None
    disabled: bool | None = None
    label: str | None = None
    bearer_auth: bool | None = None
    context_window: int | None = None
    max_output: int | None = None
    updated_at: int | None = None
    updated_by: str | None = None
