"""Whatever arrives, the language answers with a command or with a NoemaError."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import NoemaError
from core.language import bind, format_command, from_json, parameter_names, parse

_FIXTURES = Path(__file__).parents[2] / "fixtures" / "language"


def _blocks(name: str) -> list[str]:
    return [
        block for block in re.split(r"\n\n+", (_FIXTURES / name).read_text()) if not block.startswith("//")
    ]


_PROGRAMS = _blocks("identity.kip")
_SEEDS = [*_PROGRAMS, *_blocks("errors.kip")]
_PIECES = sorted({piece for seed in _SEEDS for piece in re.findall(r'"[^"]*"|[?:]?\w+|\s+|[^\w\s]', seed)})
_CODES = {
    "InvalidSyntax", "InvalidIdentifier", "ResourceExhausted", "ReferenceError", "DuplicateLocalHandle",
    "ProtectedSystemField", "IdentitySelectorRequired", "NameIdentityForbidden",
}  # fmt: skip
_bounded = settings(
    max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def _survives(text: str) -> bool:
    """Whether a text is a command, having checked that it is one or a proper refusal."""
    refusal = _refusal(lambda: parse(text))
    if refusal is None:
        assert parse(format_command(parse(text))) == parse(text)
        return True
    assert refusal.code in _CODES
    assert 0 <= refusal.details["offset"] <= len(text)
    return False


def _refusal(act: Callable[[], object]) -> NoemaError | None:
    try:
        act()
    except NoemaError as error:
        return error
    return None


@_bounded
@given(st.text())
def test_any_text_is_a_command_or_a_refusal(text: str) -> None:
    """Arbitrary Unicode never raises anything but NoemaError."""
    _survives(text)


@_bounded
@given(st.lists(st.sampled_from(_PIECES), max_size=40).map("".join))
def test_any_row_of_tokens_is_a_command_or_a_refusal(text: str) -> None:
    """The pieces of real programs in any order never raise anything but NoemaError."""
    _survives(text)


def test_damaged_programs_are_commands_or_refusals() -> None:
    """Programs with parts removed, doubled, exchanged or cut off never raise anything but NoemaError."""
    chance = random.Random(20260816)  # a fixed seed: the same damage every time
    accepted = 0
    for _ in range(3000):
        pieces = re.findall(r'"[^"]*"|[?:]?\w+|\s+|[^\w\s]', chance.choice(_PROGRAMS))
        for _ in range(chance.randint(1, 2)):
            at = chance.randrange(len(pieces))
            match chance.randrange(4):
                case 0:
                    del pieces[at : at + chance.randint(1, 4)]
                case 1:
                    pieces.insert(at, chance.choice(_PIECES))
                case 2:
                    pieces[at] = chance.choice(_PIECES)
                case _:
                    del pieces[at:]
            if not pieces:
                break
        accepted += _survives("".join(pieces))

    assert 100 < accepted < 2900  # the damage is neither always fatal nor always harmless


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "value", "a"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@_bounded
@given(st.sampled_from(_SEEDS), _json)
def test_any_value_of_a_parameter_is_bound_or_refused(text: str, value: Any) -> None:
    """Arbitrary JSON in every parameter of a real program never raises anything but NoemaError."""
    try:
        command = parse(text)
        bound = bind(command, dict.fromkeys(parameter_names(command), value))
    except NoemaError:
        return
    assert not parameter_names(bound)


@_bounded
@given(
    _json | st.sampled_from(_SEEDS).map(lambda text: {"node": "Find", "projections": text, "where": [text]})
)
def test_any_json_is_a_command_or_a_refusal(form: Any) -> None:
    """Arbitrary JSON in `ast` never raises anything but NoemaError."""
    refusal = _refusal(lambda: from_json(form))

    assert refusal is None or refusal.code in _CODES
