"""What a `Table` must do, as data: rows given, one transaction, and what is then true. Every store runs them all."""

from __future__ import annotations

import msgspec

from core.ports import (
    MAX_ROW_BYTES,
    MAX_WRITES,
    Check,
    Delete,
    Put,
    Refused,
    Row,
    StoreFault,
    TooLarge,
    Update,
    When,
    Write,
)

BUG = (ValueError, StoreFault)  # a malformed write: our own check says ValueError, DynamoDB's a plain fault


class Case(msgspec.Struct, frozen=True):
    """One transaction on the row `a` (and others) of the partition `p`.

    given: rows that stand before. writes: the transaction. refused: the failed writes with their rows, if it is
    refused. raises: the other fault it meets. then: rows after it; rows not named are as given.
    """

    name: str
    writes: list[Write]
    given: dict[str, Row] = {}
    refused: dict[int, Row | None] | None = None
    raises: type[Exception] | tuple[type[Exception], ...] | None = None
    then: dict[str, Row | None] = {}


def put(sk: str, row: Row, when: When | None = None) -> Put:
    return Put("p", sk, row, when)


def update(
    sk: str, assign: Row | None = None, add: dict[str, int] | None = None, when: When | None = None
) -> Update:
    return Update("p", sk, assign or {}, add or {}, when)


def delete(sk: str, when: When | None = None) -> Delete:
    return Delete("p", sk, when)


def check(sk: str, when: When) -> Check:
    return Check("p", sk, when)


def conditional(name: str, given: Row | None, when: When, *, holds: bool) -> list[Case]:
    """The same condition on every kind of write, alone and in a transaction with another write."""
    rows = {} if given is None else {"a": given}
    kinds: list[tuple[str, Write, Row | None]] = [
        ("put", put("a", {"new": 1}, when), {"new": 1}),
        ("update", update("a", {"new": 1}, when=when), {**(given or {}), "new": 1}),
        ("delete", delete("a", when), None),
        ("check", check("a", when), given),
    ]
    cases = []
    for kind, write, after in kinds:
        for company in (False, True):
            writes = [put("z", {"with": True}), write] if company else [write]
            at = len(writes) - 1
            cases.append(
                Case(
                    f"{name}-{kind}{'-in-company' if company else ''}",
                    writes,
                    given=rows,
                    refused=None if holds else {at: given},
                    then={"a": after, **({"z": {"with": True}} if company else {})}
                    if holds
                    else {"a": given, "z": None},
                )
            )
    return cases


HEAD: Row = {"ver": 7, "state": "active", "open": True, "chain": b"\x00\xff", "none": ""}

CONDITIONS = [
    *conditional("absent-of-absent", None, When(absent=True), holds=True),
    *conditional("absent-of-present", HEAD, When(absent=True), holds=False),
    *conditional("present-of-present", HEAD, When(present=True), holds=True),
    *conditional("present-of-absent", None, When(present=True), holds=False),
    *conditional("equals-all", HEAD, When(equals=dict(HEAD)), holds=True),
    *conditional("equals-number", HEAD, When(equals={"ver": 8}), holds=False),
    *conditional("equals-one-of-two-differs", HEAD, When(equals={"ver": 7, "state": "purging"}), holds=False),
    *conditional("equals-missing-attribute", HEAD, When(equals={"pgen": 1}), holds=False),
    *conditional("equals-none-of-missing", HEAD, When(equals={"pgen": None}), holds=True),
    *conditional("equals-none-of-present", HEAD, When(equals={"ver": None}), holds=False),
    *conditional("equals-none-of-empty-text", HEAD, When(equals={"none": None}), holds=False),
    *conditional("equals-none-of-absent-row", None, When(equals={"pgen": None}), holds=True),
    *conditional("equals-of-absent-row", None, When(equals={"ver": 7}), holds=False),
    *conditional("equals-bytes", HEAD, When(equals={"chain": b"\x00\xfe"}), holds=False),
    *conditional("true-is-not-one", HEAD, When(equals={"open": 1}), holds=False),
    *conditional("one-is-not-true", {"n": 1}, When(equals={"n": True}), holds=False),
    *conditional("text-is-not-bytes", {"n": "x"}, When(equals={"n": b"x"}), holds=False),
    *conditional("text-is-not-number", {"n": "1"}, When(equals={"n": 1}), holds=False),
    *conditional("below-less", HEAD, When(below={"ver": 8}), holds=True),
    *conditional("below-equal", HEAD, When(below={"ver": 7}), holds=False),
    *conditional("below-greater", HEAD, When(below={"ver": 6}), holds=False),
    *conditional("below-missing", HEAD, When(below={"until": -5}), holds=True),
    *conditional("below-absent-row", None, When(below={"until": 5}), holds=True),
    *conditional("below-negative", {"n": -3}, When(below={"n": -2}), holds=True),
    *conditional("below-text", HEAD, When(below={"state": 5}), holds=False),
    *conditional("below-boolean", HEAD, When(below={"open": 5}), holds=False),
    *conditional("every-part-at-once", HEAD, When(present=True, equals={"ver": 7, "x": None}, below={"ver": 9}), holds=True),
    *conditional("one-part-of-all-fails", HEAD, When(present=True, equals={"ver": 7, "x": None}, below={"ver": 5}), holds=False),
    *conditional("no-parts", HEAD, When(), holds=True),
]  # fmt: skip
CONDITIONS = [case for case in CONDITIONS if not case.name.startswith("no-parts-check")]

VALUES: Row = {
    "zero": 0, "minus": -1, "2^53": 2**53, "2^53+1": 2**53 + 1, "-2^53-1": -(2**53) - 1,
    "most": 2**63 - 1, "least": -(2**63) + 1,
    "empty": "", "nothing": b"", "nul": "\x00", "bytes": bytes(range(256)), "yes": True, "no": False,
    "nfc": "é", "nfd": "e\u0301", "rtl": "שלום", "emoji": "👩‍👩‍👧‍👦", "zero width": "a\u200bb", "name with .dots[0] #:": 1,
    "SET": 1, "ключ": "значение",
}  # fmt: skip

WRITES = [
    Case("put-every-value", [put("a", VALUES)], then={"a": VALUES}),
    Case("put-every-value-in-company", [put("a", VALUES), put("b", {})], then={"a": VALUES, "b": {}}),
    Case("update-to-every-value", [update("a", VALUES)], then={"a": VALUES}),
    Case("put-replaces-the-row", [put("a", {"y": 2})], given={"a": {"x": 1}}, then={"a": {"y": 2}}),
    Case("put-drops-none", [put("a", {"x": None, "y": 1})], then={"a": {"y": 1}}),
    Case("put-of-nothing-is-a-row", [put("a", {})], then={"a": {}}),
    Case(
        "update-keeps-the-rest", [update("a", {"y": 2})], given={"a": {"x": 1}}, then={"a": {"x": 1, "y": 2}}
    ),
    Case("update-makes-a-row", [update("a", {"y": 2})], then={"a": {"y": 2}}),
    Case(
        "update-removes-with-none",
        [update("a", {"x": None, "gone": None, "y": 3})],
        given={"a": {"x": 1, "y": 2}},
        then={"a": {"y": 3}},
    ),
    Case(
        "update-that-only-removes-a-present-row",
        [update("a", {"x": None}, when=When(present=True))],
        given={"a": {"x": 1, "y": 2}},
        then={"a": {"y": 2}},
    ),
    Case(
        "update-that-only-removes-unconditionally",
        [update("a", {"x": None})],
        given={"a": {"x": 1}},
        raises=BUG,
    ),
    Case("update-of-nothing", [update("a")], given={"a": {"x": 1}}, raises=BUG),
    Case("add-to-number", [update("a", add={"n": 5})], given={"a": {"n": 2}}, then={"a": {"n": 7}}),
    Case("add-below-zero", [update("a", add={"n": -5})], given={"a": {"n": 2}}, then={"a": {"n": -3}}),
    Case("add-to-missing", [update("a", add={"n": 5})], given={"a": {"x": 2}}, then={"a": {"x": 2, "n": 5}}),
    Case("add-to-absent-row", [update("a", add={"n": 5})], then={"a": {"n": 5}}),
    Case(
        "add-past-2^53", [update("a", add={"n": 1})], given={"a": {"n": 2**53}}, then={"a": {"n": 2**53 + 1}}
    ),
    Case(
        "assign-and-add-together",
        [update("a", {"s": "x", "gone": None}, {"n": 1, "m": 2}, When(equals={"n": 1}))],
        given={"a": {"n": 1, "gone": 1}},
        then={"a": {"s": "x", "n": 2, "m": 2}},
    ),
    Case("add-to-text", [update("a", add={"n": 1})], given={"a": {"n": "1"}}, raises=BUG),
    Case(
        "add-to-text-in-company",
        [put("b", {}), update("a", add={"n": 1})],
        given={"a": {"n": "1"}},
        raises=BUG,
    ),
    Case("assign-and-add-to-one-attribute", [update("a", {"n": 1}, {"n": 1})], raises=BUG),
    Case("delete-absent", [delete("a")], then={"a": None}),
    Case("delete-present", [delete("a")], given={"a": {"x": 1}, "b": {}}, then={"a": None, "b": {}}),
    Case("no-writes", [], given={"a": {"x": 1}}, then={"a": {"x": 1}}),
    Case("write-one-row-twice", [put("a", {}), delete("a")], given={"a": {"x": 1}}, raises=BUG),
    Case("write-the-partition-key", [put("a", {"pk": "q"})], raises=BUG),
    Case("write-an-attribute-without-a-name", [put("a", {"": 1})], raises=BUG),
    Case("write-a-row-without-a-key", [put("", {"x": 1})], raises=BUG),
    Case("write-a-key-too-long", [put("k" * 1025, {"x": 1})], raises=BUG),
    Case("write-the-longest-key", [put("k" * 1024, {"x": 1})], then={"k" * 1024: {"x": 1}}),
    Case("write-a-lone-surrogate", [put("a", {"x": "\ud800"})], raises=BUG),
    Case("write-a-number-over-64-bits", [put("a", {"x": 2**63})], raises=BUG),
    Case("write-a-float", [put("a", {"x": 1.5})], raises=BUG),  # type: ignore[dict-item]
]

COMMIT: list[Write] = [
    update(
        "HEAD", {"ver": 8, "chain": b"8"}, {"log_n": 1}, When(equals={"ver": 7, "pgen": 0, "state": "active"})
    ),
    put("D#000000000008", {"body": b"delta"}, When(absent=True)),
    put("I#key", {"digest": "d"}, When(absent=True)),
    check("T#token", When(present=True)),
    delete("Q#1", When(present=True)),
]
STANDING: dict[str, Row] = {
    "HEAD": {"ver": 7, "pgen": 0, "state": "active", "log_n": 4},
    "T#token": {"scope": "read"},
    "Q#1": {"work": 1},
}

TRANSACTIONS = [
    Case(
        "all-kinds-land-together",
        COMMIT,
        given=STANDING,
        then={
            "HEAD": {"ver": 8, "pgen": 0, "state": "active", "log_n": 5, "chain": b"8"},
            "D#000000000008": {"body": b"delta"},
            "I#key": {"digest": "d"},
            "T#token": {"scope": "read"},
            "Q#1": None,
        },
    ),
    Case(
        "one-refusal-undoes-all",
        COMMIT,
        given={**STANDING, "I#key": {"digest": "other"}},
        refused={2: {"digest": "other"}},
        then={**STANDING, "D#000000000008": None, "I#key": {"digest": "other"}},
    ),
    Case(
        "every-refusal-is-named-with-its-row",
        COMMIT,
        given={"HEAD": {"ver": 9, "pgen": 0, "state": "active", "log_n": 4}, "I#key": {"digest": "d"}},
        refused={
            0: {"ver": 9, "pgen": 0, "state": "active", "log_n": 4},
            2: {"digest": "d"},
            3: None,
            4: None,
        },
        then={"D#000000000008": None},
    ),
    Case(
        "refusal-beside-unconditional-writes",
        [put("x", {"n": 1}), update("y", add={"n": 1}), delete("d"), check("a", When(present=True))],
        given={"d": {"n": 1}},
        refused={3: None},
        then={"x": None, "y": None, "d": {"n": 1}},
    ),
    Case(
        "same-sort-key-in-two-partitions",
        [Put("p", "a", {"n": 1}), Put("q", "a", {"n": 2})],
        then={"a": {"n": 1}},
    ),
]

BIG = "x" * (
    MAX_ROW_BYTES - 100
)  # text: a local AWS may count bytes in base64, a third more than DynamoDB does

LIMITS = [
    Case(
        "as-many-writes-as-may-be",
        [put(f"r{n:03}", {"n": n}) for n in range(MAX_WRITES)],
        then={f"r{n:03}": {"n": n} for n in range(MAX_WRITES)},
    ),
    Case("one-write-too-many", [put(f"r{n:03}", {"n": n}) for n in range(MAX_WRITES + 1)], raises=TooLarge, then={"r000": None}),
    Case("the-largest-row", [put("a", {"x": BIG})], then={"a": {"x": BIG}}),
    Case("the-largest-row-by-update", [update("a", {"x": BIG})], given={"a": {"n": 1}}, then={"a": {"x": BIG, "n": 1}}),
    Case("a-row-too-large", [put("a", {"x": BIG + "x" * 100})], raises=TooLarge, then={"a": None}),
    Case("a-row-too-large-in-utf8", [put("a", {"x": "é" * (MAX_ROW_BYTES // 2)})], raises=TooLarge, then={"a": None}),
    Case(
        "a-row-too-large-in-company",
        [put("b", {}), update("a", {"x": BIG + "x" * 100})],
        raises=TooLarge,
        then={"a": None, "b": None},
    ),
    Case(
        "a-row-grown-too-large",
        [update("a", {"y": BIG})],
        given={"a": {"x": b"x" * 30_000}},
        raises=TooLarge,
        then={"a": {"x": b"x" * 30_000}},
    ),
    Case(
        "a-row-grown-too-large-in-company",
        [put("b", {}), update("a", {"y": BIG})],
        given={"a": {"x": b"x" * 30_000}},
        raises=TooLarge,
        then={"a": {"x": b"x" * 30_000}, "b": None},
    ),
    Case("ten-large-rows", [put(f"r{n}", {"x": BIG}) for n in range(10)], then={f"r{n}": {"x": BIG} for n in range(10)}),
    Case("eleven-large-rows", [put(f"r{n:02}", {"x": BIG}) for n in range(11)], raises=TooLarge, then={"r00": None}),
]  # fmt: skip

CASES = [*CONDITIONS, *WRITES, *TRANSACTIONS, *LIMITS]


def fault_of(case: Case) -> type[Exception] | tuple[type[Exception], ...] | None:
    """What the transaction of a case raises, if anything."""
    return Refused if case.refused is not None else case.raises
