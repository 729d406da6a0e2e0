"""A process that commits to the embedded store until it is killed; prints each acknowledged number.

Usage: writer.py TABLE OBJECTS WHO
"""

from __future__ import annotations

import sys
from pathlib import Path

from core.ports import Put, Refused, Update, When
from infra.local.objects import DirectoryObjects
from infra.local.table import SqliteTable


def main(table: SqliteTable, objects: DirectoryObjects, who: str) -> None:
    """Count up HEAD, one row and one object for each number, as fast as it goes."""
    while True:
        head = table.get("p", "HEAD") or {}
        ver = head.get("ver", 0)
        assert isinstance(ver, int)
        key = f"sp/d/{ver + 1:012}-{who}"
        objects.put(key, f"{ver + 1}{who}".encode() * 1000)
        try:
            table.transact([
                Update("p", "HEAD", {"ver": ver + 1}, {f"by_{who}": 1}, When(equals={"ver": ver or None})),
                Put("p", f"D#{ver + 1:012}", {"key": key, "pad": "x" * 5000}, When(absent=True)),
            ])  # fmt: skip
        except Refused:
            objects.delete([key])
        else:
            print(ver + 1, flush=True)


if __name__ == "__main__":
    main(SqliteTable(Path(sys.argv[1])), DirectoryObjects(Path(sys.argv[2])), sys.argv[3])
