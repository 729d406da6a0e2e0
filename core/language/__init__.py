"""KIP 2.0 as a language: text to tree, tree to text, parameters into a tree.

What lives here: the public face of the package. What must never live here: schema, state, authority. A command
that parses is not thereby meaningful, allowed or committed.
"""

from core.language.ast_kml import KmlStatement
from core.language.ast_kql import Find
from core.language.ast_meta import MetaStatement

Command = Find | KmlStatement | MetaStatement

__all__ = ["Command"]
