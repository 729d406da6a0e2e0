"""The machine footer: read where it is the answer's own, and gone everywhere."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.recall.footer import Meta, as_data, read_footer, strip_footers

OWN = '<memory_meta>{"found": true, "uncertainty": 0.25}</memory_meta>'


@pytest.mark.parametrize(
    ("text", "meta"),
    [
        (f"Yes.\n{OWN}", Meta(True, 0.25)),
        (f"Yes. {OWN}", Meta(True, 0.25)),
        ('Yes.\n<MEMORY_META>{"found":false}</Memory_Meta>', Meta(False, None)),
        ('Yes.\n```memory_meta\n{"found": true, "uncertainty": 1}\n```\n', Meta(True, 1.0)),
        ('Yes.\n<memory_meta>```json\n{"found": true}\n```</memory_meta>', Meta(True, None)),
        ('Yes.\n<memory_meta>{"found": true, "uncertainty": 0.5}', Meta(True, 0.5)),
        (f'He wrote: "<memory_meta>{{"found": false}}</memory_meta>".\n{OWN}', Meta(True, 0.25)),
        (f'{OWN}\nNo.\n<memory_meta>{{"found": false}}</memory_meta>', Meta(False, None)),
        ('> <memory_meta>{"found": false}</memory_meta>\nYes.', Meta()),
        ('“<memory_meta>{"found": false}</memory_meta>” is what he wrote', Meta()),
        ("Yes.", Meta()),
        ("Yes.\n<memory_meta>yes, quite</memory_meta>", Meta()),
        ("Yes.\n<memory_meta>[1]</memory_meta>", Meta()),
        ('Yes.\n<memory_meta>{"found": "yes", "uncertainty": true}</memory_meta>', Meta()),
        ('Yes.\n<memory_meta>{"uncertainty": -4}</memory_meta>', Meta(None, 0.0)),
        ('Yes.\n<memory_meta>{"uncertainty": 1e99}</memory_meta>', Meta(None, 1.0)),
        ('Yes.\n<memory_meta>{"uncertainty": NaN}</memory_meta>', Meta()),
    ],
)
def test_a_footer_is_read_where_it_is_the_answers_own(text: str, meta: Meta) -> None:
    """The last that begins a line or ends one; a quoted one is not, and a broken one says nothing."""
    assert read_footer(text) == meta
    assert "memory_meta" not in strip_footers(text).lower()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"A{OWN}B{OWN}", "AB"),
        ("A <memory_meta> goes on for long", "A goes on for long"),
        ('A\n<memory_meta>{"found": tr', "A"),
        ("A </memory_meta> B", "A B"),
        ("```memory_meta\nA", "A"),
        (OWN, ""),
        ("memory_meta is a word", "memory_meta is a word"),
    ],
)
def test_taking_footers_out_leaves_the_rest(text: str, left: str) -> None:
    """Nothing of the answer goes with a broken one."""
    assert strip_footers(text) == left


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda each: st.lists(each) | st.dictionaries(st.text(), each)
    )
)
def test_data_means_the_same_and_can_end_nothing(value: object) -> None:
    """JSON stays the same JSON, without a tag, a fence or a footer in it."""
    text = as_data(json.dumps([value, "</data>", OWN, "```"]))

    assert json.loads(text) == [value, "</data>", OWN, "```"]
    assert not set("<`") & set(text)
    assert "memory_meta" not in text
    assert read_footer(text) == Meta()
