"""Spaces that come to be when somebody first speaks MCP to them, where the operator wants that (contract §8).

What lives here: who may bring one about, and who owns it then. What must never live here: how a space is made
(`core.service.admin`). Off unless `MCP_HTTP_AUTO_CREATE_SPACE` is set, and never without keys: a name that anybody
can guess must not cost the operator a space.
"""

from __future__ import annotations

import msgspec

from core.errors import NoemaError
from core.protocol.http_types import CreateSpaceInput
from functions.bootstrap import Services
from functions.routing import Call


def make_missing(services: Services, call: Call) -> None:
    """Make the space that a request is for, if there is none and its caller may bring it about.

    That is a CWT for the space with scope write or `*`; its subject owns the space. A space that was deleted is made
    anew, and empty. For anybody else nothing happens, and a space that is not there is told as ever.

    Raises:
        NoemaError: as `Spaces.head` and `Admin.create_space`.
    """
    settings, caller = services.settings, call.caller
    if settings.mcp_create_tier is None or not settings.tenant_keys:
        return
    if caller.kind != "cwt" or caller.scope not in ("write", "*"):
        return
    try:
        services.spaces.head(call.space)
    except NoemaError as error:
        if error.code != "NotFoundOrNotVisible":
            raise
        wish = CreateSpaceInput(user=caller.subject, space_id=call.space, tier=settings.mcp_create_tier)
        try:
            services.admin.create_space(msgspec.structs.replace(caller, channel="mcp"), wish, call.deadline)
        except NoemaError as clash:
            if clash.code != "IdentityConflict":  # somebody else was faster
                raise
