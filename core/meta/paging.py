"""Pages of LIST, SEARCH and HISTORY: LIMIT, and cursors bound to what they continue (KIP §63.3, §88.4).

What lives here: reading the two clauses and sealing the place where the next page begins. What must never live
here: what is paged. A cursor is of one family, one statement, one caller and one space; it holds no authority, so
every page is governed anew.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from core.errors import NoemaError
from core.language import to_canonical
from core.language.ast_meta import History, ListStatement, Search
from core.meta.operands import count_of, optional_text
from core.query.cursor import digest, open_cursor, seal_cursor
from core.transaction.scope import Scope

Family = Literal["list", "search", "history"]


class Page(msgspec.Struct, frozen=True):
    """One page that was asked for: at most `size` rows, from the place that `at` tells (empty: the beginning)."""

    family: Family
    statement: ListStatement | Search | History
    scope: Scope
    size: int
    at: dict[str, Any]

    def cursor(self, **place: Any) -> str:  # JSON values
        """A cursor for the page that begins at a place."""
        context = self.scope.context
        claims = {**_identity(self.statement, self.scope), **place}
        return seal_cursor(self.family, claims, context.secret, now=context.now)


def page_of(
    family: Family, statement: ListStatement | Search | History, scope: Scope, *, usual: int, most: int
) -> Page:
    """The page a statement asks for.

    Args:
        family: of the cursor.
        statement: bound.
        scope: its surroundings.
        usual: the rows of a page where no LIMIT is written.
        most: the rows of a page at most; a larger LIMIT is served in pages of this size.

    Raises:
        NoemaError: TypeMismatch, ConstraintViolation, CursorMismatch, CursorTypeMismatch, CursorExpired,
            CursorInvalidated.
    """
    wanted = count_of(statement.limit, "LIMIT")
    size = usual if wanted is None else min(wanted, most)
    text = optional_text(statement.cursor, "CURSOR")
    if text is None:
        return Page(family, statement, scope, size, {})
    context = scope.context
    ttl = context.limits.cursor_ttl_ms
    claims = open_cursor(family, text, context.secret, now=context.now, ttl_ms=ttl)
    mine = _identity(statement, scope)
    if claims["q"] != mine["q"] or claims["w"] != mine["w"]:
        raise NoemaError("CursorMismatch", "the cursor continues another statement, space or caller")
    if claims["a"] != mine["a"]:
        raise NoemaError("CursorInvalidated", "what you may see here has changed since the first page")
    return Page(family, statement, scope, size, claims)


def _identity(statement: ListStatement | Search | History, scope: Scope) -> dict[str, Any]:
    """What a cursor is bound to: the statement without its paging, who asks where, and what they may see."""
    meta, context = scope.state.meta, scope.context
    form = to_canonical(msgspec.structs.replace(statement, cursor=None, limit=None))
    return {
        "q": digest(form),
        "w": digest([meta.space_id, context.principal.id]),
        "a": digest([meta.instance, context.authority]),
    }
