"""META: what a space can say about itself (KIP §63-69).

What lives here: one `answer` to any bound META statement, over a `Scope`. What must never live here: writing;
VALIDATE and PREVIEW run on a draft that nobody commits.
"""

from core.meta.answer import answer
from core.meta.coordinates import SNAPSHOT_FAMILY

__all__ = ["SNAPSHOT_FAMILY", "answer"]
