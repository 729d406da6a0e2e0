"""`core.capsule.stream`: a Capsule in lines is the same artifact, and nothing before its last line counts."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.capsule.stream import Lines, PayloadDigest, is_lines, lines_of
from core.errors import NoemaError
from core.protocol.canonical import canonical_json, digest_of
from tests.conformance.harness import World

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
RECORDS = st.lists(JSON, max_size=3)


@pytest.fixture(scope="module")
def artifact() -> dict[str, Any]:
    """A whole space as one value."""
    world = World(life=30)
    world.ok('CREATE EVIDENCE ?e {SET FIELDS {evidence_class: "message", payload: :long}}', long="x" * 5000)
    world.ok(
        'MUTATE {ENSURE PROPOSITION ?p (:alice, "prefers", :dark_mode) CREATE ASSERTION ?a {SET FIELDS {proposition: ?p, '
        'asserted_by: :alice, stance: "support", mode: "stated", confidence: 0.25}}}'
    )
    return world.export_space()


@settings(max_examples=60, deadline=None)
@given(
    header=st.dictionaries(st.sampled_from(["blobs", "manifest", "schema", "source", "extensions"]), JSON),
    lists=st.fixed_dictionaries(
        {}, optional={"activities": RECORDS, "concepts": RECORDS, "propositions": RECORDS}
    ),
)
def test_the_digest_of_pieces_is_that_of_the_whole(
    header: dict[str, Any], lists: dict[str, list[Any]]
) -> None:
    """Whatever stands in a payload, hashing it record by record gives the digest of its canonical form."""
    there = {name: records for name, records in lists.items() if records}
    pieces = PayloadDigest(header)
    for name in sorted(there):
        for record in there[name]:
            pieces.add(name, canonical_json(record))

    assert pieces.finish() == digest_of({**header, "records": there})


def test_lines_have_the_digest_of_the_artifact(artifact: dict[str, Any]) -> None:
    """An artifact cut into lines is read back as the same content, with the same proofs."""
    lines = Lines(lines_of(artifact))
    count = sum(1 for _ in lines.records())

    assert lines.finish() == artifact["integrity"]["content_digest"]
    assert lines.integrity is not None
    assert len(lines.integrity.proofs) == 1
    assert count == sum(artifact["payload"]["manifest"]["counts"].values()) == 15
    assert is_lines(next(iter(lines_of(artifact))))
    assert not is_lines(json.dumps(artifact).encode())


def _read(given: list[bytes]) -> str:
    lines = Lines(given)
    list(lines.records())
    return lines.finish()


def _cut(lines: list[bytes]) -> list[bytes]:
    return lines[:-1]


def _lost(lines: list[bytes]) -> list[bytes]:
    return [*lines[:3], *lines[4:]]


def _twice(lines: list[bytes]) -> list[bytes]:
    return [*lines[:4], *lines[3:]]


def _turned(lines: list[bytes]) -> list[bytes]:
    return [lines[0], *reversed(lines[1:-1]), lines[-1]]


def _more(lines: list[bytes]) -> list[bytes]:
    return [*lines, b'{"concepts":{}}\n']


def _changed(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"Dark mode"', b'"Dark  mode"') for line in lines]


def _two(lines: list[bytes]) -> list[bytes]:
    return [lines[0], b'{"concepts":{},"evidence":{}}', *lines[1:]]


@pytest.mark.parametrize("harm", [_cut, _lost, _twice, _turned, _more, _changed, _two])
def test_harmed_lines_are_refused(
    artifact: dict[str, Any], harm: Callable[[list[bytes]], list[bytes]]
) -> None:
    """A line lost, doubled, moved, changed or added is found out before the artifact counts."""
    with pytest.raises(NoemaError) as caught:
        _read(harm(list(lines_of(copy.deepcopy(artifact)))))

    assert caught.value.code in {"ArtifactParseError", "CapsuleValidationFailed", "DigestMismatch"}


def test_a_long_line_is_refused() -> None:
    """No line is read that is longer than a line may be."""
    with pytest.raises(NoemaError) as caught:
        Lines([b'{"a":"' + b"x" * (9 << 20) + b'"}'])

    assert caught.value.code == "ArtifactTooLarge"
