"""The one entry point of META: a statement and its surroundings in, an answer out."""

from __future__ import annotations

from core.errors import NoemaError
from core.language.ast_meta import MetaStatement
from core.transaction.scope import Answer, Scope


def answer(statement: MetaStatement, scope: Scope) -> Answer:
    """The answer to a bound META statement.

    Raises:
        NoemaError: what is wrong with it.
        Missing: something must be handed in first (`core.transaction.needs`).
    """
    name = type(statement).__name__
    raise NoemaError(
        "NotImplementedYet", f"{name} is not there yet", details={"space_id": scope.state.meta.space_id}
    )
