"""Erasures that are owed: a KIP PURGE commits a stub at once, and the bytes of the past must follow.

What lives here: the debt, written in the purge's own transaction so that no crash or busy space can lose it,
and its settlement. What must never live here: the erasing (`core.service.erasure`) and what a PURGE may touch
(`core.mutation`). Whoever purged settles at once; where that fails, the caretaker's round finds the debt on
HEAD and settles it later. Settling twice does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

from core.ports import Delete, Put, Refused, Row, Update, When, Write
from core.service.erasure import MAX_IDS, ErasureReceipt
from core.service.faults import reading
from core.service.spaces import Spaces
from core.storage.layout import HEAD, owed_sk, rows_of, space_pk

OWED: Final = "owed"  # HEAD's attribute: the version of the newest purge whose bytes are still to go
_PAGE: Final = 20


class Eraser(Protocol):
    """What settling needs of `core.service.erasure.Erasures`."""

    def erase(self, space_id: str, ids: Sequence[str], principal: str, *, owner: str) -> ErasureReceipt:
        """Erase elements physically."""


def debt(space_id: str, ver: int, ids: Sequence[str], principal: str) -> tuple[Write, Row]:
    """The row and the HEAD attribute that a purge commits with its stubs.

    Args:
        space_id: the space.
        ver: the version the purge commits as.
        ids: the stubs.
        principal: who purged; recorded in the erasure's receipt.
    """
    row: Row = {"ids": " ".join(ids), "by": principal}
    return Put(space_pk(space_id), owed_sk(ver), row, When(absent=True)), {OWED: ver}


def settle(spaces: Spaces, eraser: Eraser, space_id: str, owner: str) -> int:
    """Erase what is owed; how many purges were settled.

    Args:
        spaces: the store.
        eraser: does it.
        space_id: the space.
        owner: names this run, uniquely.

    Raises:
        NoemaError: as `Erasures.erase`; what is left stays owed.
    """
    pk, settled = space_pk(space_id), 0
    with reading():
        newest = spaces.read_head(space_id).number(OWED)
        while newest and (rows := spaces.table.query(pk, *rows_of("O"), limit=_PAGE)):
            for sk, row in rows:
                ids = str(row["ids"]).split()
                for first in range(0, len(ids), MAX_IDS):
                    run = f"{owner}-{settled}-{first}"
                    eraser.erase(space_id, ids[first : first + MAX_IDS], str(row["by"]), owner=run)
                spaces.table.transact([Delete(pk, sk)])
                settled += 1
        if newest:
            paid = Update(pk, HEAD, assign={OWED: None}, when=When(equals={OWED: newest}))
            with suppress(Refused):  # a newer purge owes again
                spaces.table.transact([paid])
    return settled
