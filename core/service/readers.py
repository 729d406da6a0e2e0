"""Readers: an admitted caller as the engine knows one who only reads.

What lives here: the one step from a credential to the Principal of a read that the service itself makes for a caller.
What must never live here: anything a request body says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from core.authority import Principal
from core.service.values import Caller

READING: Final = frozenset({"discover", "read", "search", "project"})
"""What a recall may do for anybody. Whoever may write more still only reads here."""

PrincipalOf = Callable[[Caller], Principal]


def reader_of(caller: Caller) -> Principal:
    """The Principal of a read made for a caller."""
    return Principal(caller.subject, caller.channel, READING)
