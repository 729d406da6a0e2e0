"""KIP 2.0 as a language: text to tree, tree to text, parameters into a tree.

What lives here: the public face of the package. What must never live here: schema, state, authority. A command
that parses is not thereby meaningful, allowed or committed.
"""

from core.language.parser import Command, Language, is_mutation, language_of, parse, verdict

__all__ = ["Command", "Language", "is_mutation", "language_of", "parse", "verdict"]
