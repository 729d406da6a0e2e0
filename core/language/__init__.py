"""KIP 2.0 as a language: text to tree, tree to text, parameters into a tree.

What lives here: the public face of the package. What must never live here: schema, state, authority. A command
that parses is not thereby meaningful, allowed or committed.
"""

from core.language.bind import bind, parameter_names
from core.language.canonical import from_json, to_canonical
from core.language.format import format_command
from core.language.parser import Command, Language, is_mutation, language_of, parse, verdict
from core.language.plain import plain_value

__all__ = [
    "Command",
    "Language",
    "bind",
    "format_command",
    "from_json",
    "is_mutation",
    "language_of",
    "parameter_names",
    "parse",
    "plain_value",
    "to_canonical",
    "verdict",
]
