"""`NOBODY`: an element that is nowhere, judged in the place of one that is not there.

What lives here: the one value. What must never live here: meaning. Deciding about a hidden element takes a few
microseconds that an absent one would not take; whoever looks an element up by a name that a caller gave decides about
this one instead, so that both cost the same.
"""

from __future__ import annotations

from typing import Final

from core.model.elements import Concept, Governance, Origin, System

NOBODY: Final = Concept(
    id="C-",
    system=System(
        version=1,
        created_at=0,
        updated_at=0,
        created_tx="",
        updated_tx="",
        origin=Origin(principal="", channel=""),
    ),
    schema_ref="",
    governance=Governance(classification=""),
)
