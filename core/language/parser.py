"""Command text to tree: which of the three languages a text is in, and the whole of it read.

What lives here: `parse`, `language_of`, `is_mutation` and `verdict`. What must never live here: productions.
"""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

from core.errors import NoemaError
from core.language import kml, meta
from core.language.ast_kml import KmlStatement
from core.language.ast_kql import Find
from core.language.ast_meta import MetaStatement, Search
from core.language.cursor import Cursor
from core.language.habits import hint_for
from core.language.kql import parse_find
from core.language.lexer import END, tokenize

Command = Find | KmlStatement | MetaStatement
Language = Literal["KQL", "KML", "META"]

_MUTATIONS: Final = frozenset(get_args(KmlStatement))
_STARTS: Final = ("FIND", "MUTATE", *kml.STATEMENTS, *meta.STATEMENTS)
_FIND_ORDER: Final = "WHERE, AS OF, FOR TIME, WITH EPISTEMIC, ORDER BY, LIMIT, CURSOR"
_SEARCH_ORDER: Final = "WITH TYPE, WITH PREDICATE, MODE, THRESHOLD, AS OF SEQ, LIMIT, CURSOR"
_CLAUSE_STARTS: Final = frozenset(
    {"WHERE", "AS", "FOR", "WITH", "ORDER", "LIMIT", "CURSOR", "MODE", "THRESHOLD", "EXPECT", "FROM", "TO"}
)


def parse(text: str) -> Command:
    """The tree of one command.

    Raises:
        NoemaError: InvalidSyntax with line, column, what was found and what was expected; InvalidIdentifier,
            ResourceExhausted, ReferenceError, DuplicateLocalHandle, ProtectedSystemField,
            IdentitySelectorRequired or NameIdentityForbidden where these say more.
    """
    cursor = Cursor(tokenize(text))
    command = _parse_command(cursor)
    if cursor.key() != END:
        cursor.fail("the end of the command", _trailing_hint(cursor, command))
    return command


def _trailing_hint(cursor: Cursor, command: Command) -> str | None:
    """Why something may follow a whole command: a second command, or a clause out of its order."""
    if cursor.key() in _CLAUSE_STARTS:
        if isinstance(command, Search):
            return f"The clauses of SEARCH have one order: {_SEARCH_ORDER}."
        if isinstance(command, Find):
            return f"The clauses of FIND have one order: {_FIND_ORDER}."
        return "The clauses of a statement have one order: WHERE, LIMIT, EXPECT."
    if cursor.key() in _STARTS:
        return "One text is one command; MUTATE { ... } commits several mutations together."
    return None


def _parse_command(cursor: Cursor) -> Command:
    key = cursor.key()
    if key == "FIND":
        return parse_find(cursor)
    if key == "MUTATE" or key in kml.STATEMENTS:
        cursor.language = "KML"
        return kml.parse_statement(cursor)
    if key in meta.STATEMENTS:
        cursor.language = "META"
        return meta.STATEMENTS[key](cursor)
    hint = "A query begins with FIND, a mutation with MUTATE, ASSERT or CREATE, introspection with DESCRIBE or SEARCH."
    return cursor.fail_choice(_STARTS, hint_for(None, key) or hint)


def language_of(command: Command) -> Language:
    """The language a command is written in, by what it is and not by any label (KIP §72)."""
    if isinstance(command, Find):
        return "KQL"
    return "KML" if is_mutation(command) else "META"


def is_mutation(command: Command) -> bool:
    """Whether a command may change a space: exactly the commands of KML (KIP §76)."""
    return type(command) in _MUTATIONS


def verdict(text: str) -> dict[str, Any]:
    """Whether a text parses: `{"accepts": true, "language": ...}` or `{"accepts": false, "error": CODE}`."""
    try:
        return {"accepts": True, "language": language_of(parse(text))}
    except NoemaError as error:
        return {"accepts": False, "error": error.code}
