"""KIP responses for a person: rows as a table, handles and receipts as lines, the rest as indented JSON."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

_WIDEST: Final = 60  # characters of one cell
_RECEIPT: Final = ("created", "updated", "purged")


def response_text(response: dict[str, Any], columns: Sequence[list[str] | None]) -> str:
    """A KIP response as text.

    Args:
        response: as decoded from JSON.
        columns: for each operation the names of its columns, or None where it is no query.
    """
    several = len(response["results"]) > 1
    parts = []
    for place, result in enumerate(response["results"]):
        names = columns[place] if place < len(columns) else None
        head = [f"[{place + 1}] {result['status']}"] if several else []
        parts.append("\n".join([*head, *_result_lines(result, names)]))
    receipt = response.get("receipt")
    if receipt:
        parts.append(_receipt_line(receipt))
    return "\n".join(part for part in parts if part)


def _result_lines(result: dict[str, Any], columns: list[str] | None) -> list[str]:
    lines: list[str] = []
    error = result.get("error")
    if error:
        lines.append(f"{error['code']}: {error.get('message', '')}")
    elif "result" in result:
        lines += _value_lines(result["result"], columns)
    lines += [f"warning: {each['code']}: {each.get('message', '')}" for each in result.get("warnings", ())]
    if "next_cursor" in result:
        lines.append(f'there is more: CURSOR "{result["next_cursor"]}"')
    return lines


def _value_lines(value: Any, columns: list[str] | None) -> list[str]:  # a JSON value
    if isinstance(value, dict) and isinstance(value.get("handles"), dict):
        rows = [[f"?{name}", each["id"], _made(each)] for name, each in value["handles"].items()]
        rest = {name: each for name, each in value.items() if name not in ("handles", "receipt")}
        own = [_receipt_line(value["receipt"])] if "receipt" in value else []
        return [*table(["handle", "id", ""], rows), *(_json_lines(rest) if rest else []), *own]
    if not isinstance(value, list):
        return _json_lines(value)
    if columns is not None:
        rows = [each if len(columns) > 1 else [each] for each in value]
        return [*table(columns, rows), _count(len(rows))]
    if value and all(isinstance(each, dict) for each in value):
        names = list(dict.fromkeys(name for each in value for name in each))
        return [*table(names, [[each.get(name) for name in names] for each in value]), _count(len(value))]
    return _json_lines(value) if value else [_count(0)]


def _made(handle: dict[str, Any]) -> str:
    return {True: "created", False: "was there"}.get(handle.get("created"), "")  # type: ignore[arg-type]


def _json_lines(value: Any) -> list[str]:  # a JSON value
    return json.dumps(value, ensure_ascii=False, indent=2).splitlines()


def _count(number: int) -> str:
    return f"({number} row{'' if number == 1 else 's'})"


def _receipt_line(receipt: dict[str, Any]) -> str:
    if receipt["status"] != "committed":
        return (
            f"{receipt['status']}: nothing was changed"
            if receipt["status"] != "unknown"
            else "unknown outcome"
        )
    summary = receipt.get("change_summary", {})
    changes = ", ".join(f"{summary[name]} {name}" for name in _RECEIPT if summary.get(name))
    return f"committed {receipt['tx_id']} at seq {receipt['space_seq']}: {changes}"


def table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Rows under their names, each column as wide as it needs to be and at most 60 characters."""
    cells = [[_cell(each) for each in row] for row in rows]
    widths = [max([_width(name), *(_width(row[at]) for row in cells)]) for at, name in enumerate(names)]
    lines = [list(names), ["-" * width for width in widths], *cells]
    return ["  ".join(map(_padded, line, widths)).rstrip() for line in lines]


def _cell(value: Any) -> str:  # a JSON value
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    text = "".join(" " if unicodedata.category(each)[0] == "C" else each for each in text)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _width(text: str) -> int:
    """Terminal columns: East Asian wide characters take two, combining ones none."""
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in text)
    return len(text) + wide - sum(unicodedata.combining(each) > 0 for each in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
