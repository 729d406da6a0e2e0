"""What must hold between the HEAD before a write and the HEAD after it, as named predicates.

Every service that writes HEAD asks `check` first. A violation is a bug of ours: nothing is written, and the
exception names the rule. They are rules about the log alone; whether an element may change is decided above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from core.model.ids import transaction_id
from core.model.log import Delta
from core.ports import Write
from core.state.space import SpaceState
from core.storage.head import MAX_HEAD_BYTES, Head, row_of
from core.storage.layout import HEAD, space_pk
from core.storage.log import next_chain
from core.storage.rows import row_bytes


class Violated(Exception):  # noqa: N818 - names the rule that a write would have broken
    """A write would have broken an invariant; nothing was written."""


def version_never_falls(before: Head, after: Head) -> bool:
    """A version is given once; a commit moves it by one, everything else leaves it."""
    return after.ver in (before.ver, before.ver + 1)


def sequence_follows_version(before: Head, after: Head) -> bool:
    """`space_seq` moves by at most one, and only with a commit (KIP §32.8); a new life begins it again."""
    if after.instance != before.instance:
        return after.seq in (0, 1)
    return before.seq <= after.seq <= before.seq + (after.ver - before.ver)


def time_never_runs_back(before: Head, after: Head) -> bool:
    """Commit times are ordered as versions are, so a time names one point of the log."""
    return after.at >= before.at


def purge_generation_never_falls(before: Head, after: Head) -> bool:
    """What was loaded before an erasure can always be told from what was loaded after it."""
    return after.pgen >= before.pgen


def epochs_never_fall(before: Head, after: Head) -> bool:
    """A lease once lost stays lost."""
    return all(
        after.number(name) >= value
        for name, value in before.row.items()
        if name.startswith("ep_") and isinstance(value, int)
    )


def history_is_ordered(before: Head, after: Head) -> bool:  # noqa: ARG001 - a rule about one HEAD
    """Born, then the oldest delta, then the floor, then now; and the base before now."""
    return after.born <= after.min_delta <= after.floor <= after.ver and after.base_ver <= after.ver


def history_only_shrinks(before: Head, after: Head) -> bool:
    """What can no longer be read does not come back; the base moves forward."""
    return (
        after.floor >= before.floor
        and after.min_delta >= before.min_delta
        and (after.base_ver >= before.base_ver or after.instance != before.instance)
    )


# state before -> states that may follow
_TRANSITIONS: Final = {
    "active": {"active", "purging", "deleted"},
    "purging": {"active", "purging", "deleted"},
    "deleted": {"deleted", "active"},
}


def state_follows(before: Head, after: Head) -> bool:
    """Deletion ends a life: only another instance is active after it, and only after it another instance is."""
    if after.state not in _TRANSITIONS[before.state]:
        return False
    reborn = before.state == "deleted" and after.state == "active"
    return (after.instance != before.instance) == reborn


def head_stays_small(before: Head, after: Head) -> bool:
    """A table bills every change of HEAD by the size of the whole row."""
    row = row_of(after)
    return row_bytes(space_pk("x" * 64), HEAD, row) < MAX_HEAD_BYTES or before is after


RULES: Final[tuple[Callable[[Head, Head], bool], ...]] = (
    version_never_falls,
    sequence_follows_version,
    time_never_runs_back,
    purge_generation_never_falls,
    epochs_never_fall,
    history_is_ordered,
    history_only_shrinks,
    state_follows,
    head_stays_small,
)


def check(before: Head, after: Head) -> None:
    """Raise `Violated` with the rule's name if `after` may not follow `before`."""
    for rule in RULES:
        if not rule(before, after):
            raise Violated(rule.__name__)


def check_chain(before: Head, after: Head, digest: bytes) -> None:
    """The chain continues with this digest, or the commit is not of this log."""
    if after.chain != next_chain(before.chain, digest):
        raise Violated("chain_continues")


def check_delta(state: SpaceState, delta: Delta) -> None:
    """A delta was decided on this very state, and names itself as such."""
    if delta.ver != state.ver + 1 or delta.snapshot_seq != state.seq:
        raise Violated("delta_was_decided_on_this_state")
    if delta.tx_id != transaction_id(delta.ver, state.meta.salt):
        raise Violated("transaction_is_named_by_its_version")
    ids = [element.id for element in delta.puts] + list(delta.gone)
    if len(set(ids)) != len(ids):
        raise Violated("an_element_is_written_once")


def check_rows(space_id: str, rows: Sequence[Write]) -> None:
    """Rows that ride along with a commit are never the log's own."""
    for row in rows:
        if row.pk == space_pk(space_id) and (row.sk == HEAD or row.sk[:2] in ("D#", "I#", "M#", "P#")):
            raise Violated("proposed_rows_are_not_the_log")
