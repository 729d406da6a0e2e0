"""Notes: what an agent writes down for its next runs; one small row for each role of a space.

What lives here: reading and writing that row, within its bounds. What must never live here: memory. A note is no
Evidence and no claim, nobody recalls it, and any erasure in the space removes all of them.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, cast

import msgspec

from core.errors import NoemaError
from core.model.elements import Json
from core.model.instants import Instant
from core.ports import Entropy, Put, Table, When
from core.service.commit import Commits, RowRefused
from core.service.faults import reading
from core.service.values import Fence, Proposal
from core.storage.layout import notes_sk, space_pk

MAX_NOTES: Final = 64
MAX_NOTE: Final = 2_000  # characters of one
MAX_BYTES: Final = 16 * 1024  # of all
INDEX_BYTES: Final = 8 * 1024
_EXCERPT: Final = 80
_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}\Z")


class Notes:
    """The notes of one role in any space. Safe to share between threads."""

    def __init__(self, table: Table, entropy: Entropy, commits: Commits, role: str) -> None:
        self._table = table
        self._entropy = entropy
        self._commits = commits
        self._role = role

    def of(self, principal: str) -> Notes:
        """The notes of runs made for one principal alone: of a governed space, what one may know is not another's."""
        digest = hashlib.sha256(principal.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return Notes(self._table, self._entropy, self._commits, f"{self._role}#{digest}")

    def index(self, space_id: str) -> list[Json]:
        """Each note's id and how it begins, at most 8 KiB of it."""
        listed: list[Json] = []
        size = 0
        for name, text in self._load(space_id)[0].items():
            entry: dict[str, Json] = {"id": name, "begins": text[:_EXCERPT], "characters": len(text)}
            size += len(msgspec.json.encode(entry))
            if size > INDEX_BYTES:
                break
            listed.append(entry)
        return listed

    def read(self, space_id: str, name: str) -> str:
        """A note.

        Raises:
            NoemaError: NotFoundOrNotVisible.
        """
        found = self._load(space_id)[0].get(name)
        if found is None:
            raise NoemaError("NotFoundOrNotVisible", f"there is no note {name[:64]!r}")
        return found

    def write(self, space_id: str, name: str, text: str, *, fence: Fence, deadline: Instant) -> None:
        """Write a note over the one of its id; an empty text removes it.

        Raises:
            NoemaError: InvalidInput or ResourceExhausted for a note that does not fit; as `Commits.commit`.
            Fenced: the lease is lost.
        """
        if _ID.match(name) is None:
            raise NoemaError("InvalidInput", "a note's id is lower case letters, digits and -, at most 64")
        if len(text) > MAX_NOTE:
            raise NoemaError("ResourceExhausted", f"a note is at most {MAX_NOTE} characters")
        notes, mark = self._load(space_id)
        notes = {**notes, name: text} if text.strip() else {n: t for n, t in notes.items() if n != name}
        body = msgspec.json.encode(notes)
        if len(notes) > MAX_NOTES or len(body) > MAX_BYTES:
            raise NoemaError(
                "ResourceExhausted",
                f"the notes are at most {MAX_NOTES}, {MAX_BYTES} bytes together",
                hint="Remove one by writing it empty, or shorten.",
            )
        when = When(absent=True) if mark is None else When(equals={"mark": mark})
        row = Put(
            space_pk(space_id), notes_sk(self._role), {"body": body, "mark": self._entropy.token(8)}, when
        )
        try:
            self._commits.commit(
                space_id, lambda _: Proposal(None, rows=(row,)), deadline=deadline, fence=fence
            )
        except RowRefused:
            raise NoemaError("SerializationConflict", "the notes changed meanwhile") from None

    def _load(self, space_id: str) -> tuple[dict[str, str], bytes | None]:
        with reading():
            row = self._table.get(space_pk(space_id), notes_sk(self._role))
        if row is None:
            return {}, None
        body, mark = row["body"], cast("bytes", row["mark"])
        return msgspec.json.decode(body if isinstance(body, bytes) else b"{}", type=dict[str, str]), mark
