"""The ranking of turns: own words, neighbours, session, dates and speaker."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from core.search.text import words
from core.search.turns import NO_TURNS, Turns, rank


@dataclass
class Stats:
    """Sizes of an index."""

    documents: int = 0
    terms: int = 0


@dataclass
class Index:
    """A text index in dicts."""

    texts: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def text_stats(self) -> Stats:
        """The sizes."""
        return Stats(len(self.texts), sum(counted.total() for counted in self.texts.values()))

    def word(self, term: str) -> Sequence[tuple[str, int]]:
        """Postings of a term."""
        return [(element, counted[term]) for element, counted in self.texts.items() if counted[term]]

    def text_length(self, element_id: str) -> int:
        """Terms of a text."""
        return self.texts[element_id].total()


def build(*sessions: Sequence[str]) -> tuple[Turns, Index]:
    """Turns of some sessions and their index."""
    index = Index()
    for number, session in enumerate(sessions):
        for place, text in enumerate(session):
            index.texts[f"E-{number:08d}{place:03d}abcde"] = Counter(words(text))
    return NO_TURNS.extend(list(index.texts), index), index


def ranked(turns: Turns, index: Index, query: str, **more: object) -> list[int]:
    """Positions, best first."""
    options = {"dated": {}, "hidden": lambda _: False, **more}
    return [turn.place for turn in rank(turns, index, tuple(dict.fromkeys(words(query))), **options)]  # type: ignore[arg-type]


def test_sessions_are_the_runs_of_one_commit() -> None:
    """The order is known from ids alone."""
    turns, _ = build(["a", "b"], ["c"], ["d", "e", "f"])

    assert list(turns.session) == [0, 0, 1, 2, 2, 2]
    assert [turns.bounds(i) for i in range(3)] == [(0, 2), (2, 3), (3, 6)]
    assert [list(turns.around(i)) for i in range(6)] == [[0, 1], [0, 1], [2], [3, 4], [3, 4, 5], [4, 5]]


def test_extending_is_the_same_as_building_at_once() -> None:
    """Carrying the order on gives what a fresh build gives, also within a session."""
    turns, index = build(["red", "green tea"], ["blue", "cold tea", "warm"])
    ids = list(index.texts)
    grown = NO_TURNS.extend(ids[:1], index).extend(ids[1:4], index).extend(ids[4:], index)

    for name in ("ids", "lengths", "starts", "session", "session_lengths", "terms", "position"):
        one, other = getattr(grown, name), getattr(turns, name)
        assert (list(one) if isinstance(one, (list, tuple)) else one) == (
            list(other) if isinstance(other, (list, tuple)) else other
        )
    assert turns.extend([], index) is turns


def test_a_turn_with_the_words_comes_before_its_neighbours() -> None:
    """The turn itself ranks first, then those beside it; what is far away does not come at all."""
    turns, index = build(
        ["nothing here", "I climbed the mountain", "how nice"], ["something else", "entirely"]
    )

    assert ranked(turns, index, "climbed mountain") == [1, 0, 2]


def test_the_session_decides_between_equal_turns() -> None:
    """Of two equal turns the one whose session is about the question comes first."""
    turns, index = build(["we met Tom", "x", "y", "z"], ["we met Tom", "x", "tennis match", "tennis racket"])

    assert ranked(turns, index, "Tom tennis")[:3] != [0]
    order = ranked(turns, index, "met tennis")
    assert order.index(4) < order.index(0)


def test_a_date_word_counts_for_turns_of_that_date() -> None:
    """The date of a turn is as good as its words."""
    turns, index = build(["we went hiking"], ["we went hiking"])

    assert ranked(turns, index, "hiking march", dated={"march": [1]})[0] == 1


def test_the_named_speaker_is_favoured() -> None:
    """Turns of the only participant named come before equal ones."""
    turns, index = build(["we went hiking", "we went hiking"])

    assert ranked(turns, index, "hiking", favoured={1})[0] == 1
    assert ranked(turns, index, "hiking")[0] == 0


def test_what_is_hidden_neither_shows_nor_counts() -> None:
    """A hidden turn is not returned, and its words do not lead to its neighbours."""
    turns, index = build(["secret mountain", "how nice"], ["other mountain"])
    secret = turns.ids[0]

    assert ranked(turns, index, "secret mountain", hidden=lambda element: element == secret) == [2]


@pytest.mark.parametrize("query", ["", "the of", "zebra", "?!"])
def test_a_query_without_known_words_ranks_nothing(query: str) -> None:
    """No word, no turn."""
    turns, index = build(["we went hiking"])

    assert ranked(turns, index, query) == []


def test_no_turns_is_no_error() -> None:
    """An empty memory has nothing to rank."""
    assert ranked(NO_TURNS, Index(), "anything") == []


def test_light_words_rank_but_are_not_held() -> None:
    """A name leads to turns and answers nothing."""
    turns, index = build(["Tom went hiking", "Tom slept"])
    found = rank(turns, index, ("tom", "hike"), dated={}, light={"tom"}, hidden=lambda _: False)

    assert found[0].coverage == 1.0
    alone = rank(turns, index, ("tom",), dated={}, light={"tom"}, hidden=lambda _: False)
    assert [turn.coverage for turn in alone] == [0.0, 0.0]


def test_terms_of_parts_have_the_place_of_their_id() -> None:
    """Elements of other kinds have no place among the turns."""
    turns, index = build(["we went hiking"])
    index.texts["C-00000000000abcde"] = Counter(words("hiking"))

    assert ranked(turns, index, "hiking") == [0]
