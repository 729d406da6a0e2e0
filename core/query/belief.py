"""(The belief patterns follow with the projection.)"""

from __future__ import annotations

from core.errors import NoemaError
from core.query.logic import Virtual
from core.query.match import Extend


class Believer:
    def extend(self, pattern: Virtual) -> Extend:
        raise NoemaError("NotImplementedYet", "BELIEF is being built")
