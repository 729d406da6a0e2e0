"""The ranking of turns: own words, neighbours, session, dates and speaker."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

import core.search.turns as turns_module
from core.model.elements import Evidence, Origin, Payload, System
from core.model.ids import Kind
from core.search.text import words
from core.search.turns import SESSIONS, Turns, Wanted, rank

SYSTEM = System(1, 0, 0, "tx", "tx", Origin("t", "t"))


@dataclass
class Stats:
    """Sizes of an index."""

    documents: int = 0
    terms: int = 0


@dataclass
class Index:
    """A text index in dicts."""

    texts: dict[str, Counter[str]] = field(default_factory=dict)
    whole: dict[str, str] = field(default_factory=dict)
    got: list[str] = field(default_factory=list)

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

    def get(self, element_id: str) -> Evidence:
        """The turn itself."""
        self.got.append(element_id)
        return Evidence(
            id=element_id,
            system=SYSTEM,
            evidence_class="m",
            payload=Payload("inline", self.whole[element_id]),
            content_digest="d",
        )

    def ids(self, kind: Kind, after: str | None = None) -> list[str]:
        """Ids of a kind after a given one."""
        assert kind == "evidence"
        return [found for found in self.texts if after is None or found[2:] > after[2:]]


@dataclass
class Built:
    """Turns by their position."""

    ids: list[str]


def build(*sessions: Sequence[str]) -> tuple[Built, Index]:
    """Turns of some sessions and their index."""
    index = Index()
    for number, session in enumerate(sessions):
        for place, text in enumerate(session):
            element = f"E-{number:08d}{place:03d}abcde"
            index.texts[element] = Counter(words(text))
            index.whole[element] = text
    return Built(list(index.texts)), index


def ranked(turns: Built, index: Index, query: str, *, hidden: str = "", **more: object) -> list[int]:
    """Positions, best first."""
    wanted = Wanted(tuple(dict.fromkeys(words(query))), **more)  # type: ignore[arg-type]
    found = rank(Turns(index), index, wanted, lambda element: element == hidden)
    return [turns.ids.index(turn.id) for turn in found if turn.id in turns.ids]


def test_sessions_are_the_runs_of_one_commit() -> None:
    """The order is known from ids alone."""
    built, index = build(["a", "b"], ["c"], ["d", "e", "f"])
    turns, ids = Turns(index), built.ids

    assert [turns.session(f"{n:08d}") for n in range(4)] == [tuple(ids[:2]), (ids[2],), tuple(ids[3:]), ()]
    assert [turns.around(one) for one in ids] == [
        tuple(ids[:2]),
        tuple(ids[:2]),
        (ids[2],),
        tuple(ids[3:5]),
        tuple(ids[3:6]),
        tuple(ids[4:6]),
    ]
    assert [turns.before(one) for one in ids] == [None, ids[0], None, None, ids[3], ids[4]]


def test_only_the_best_sessions_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sessions have a word, the turns of a bounded number are ranked, the best of them among these."""
    built, index = build(*[["we met Tom", "tennis"] if n == 70 else ["we met", "x"] for n in range(200)])
    looked: list[str] = []
    session = Turns.session
    monkeypatch.setattr(Turns, "session", lambda self, commit: looked.append(commit) or session(self, commit))

    assert ranked(built, index, "met Tom tennis")[0] in (140, 141)
    assert len(set(looked)) == SESSIONS


def test_a_common_word_is_looked_up_only_where_rarer_ones_led(monkeypatch: pytest.MonkeyPatch) -> None:
    """Postings above the bound are not read; what the rarer words find is ranked as if they had been."""
    built, index = build(
        *[["we met at the lake", "tennis"] if n == 7 else ["we met", "x"] for n in range(40)]
    )
    whole = ranked(built, index, "met lake")
    monkeypatch.setattr(turns_module, "LONG", 10)

    assert ranked(built, index, "met lake")[:2] == whole[:2] == [14, 15]
    assert len(ranked(built, index, "met lake")) == 2
    assert ranked(built, index, "met")  # nothing rarer: it is read after all


def test_few_turns_are_decoded() -> None:
    """Of all that have a word only the best are read, to see whether they ask."""
    built, index = build(["hiking " * (1 + n % 3) for n in range(300)])
    ranked(built, index, "hiking")

    assert 0 < len(index.got) <= turns_module.DECODED


def test_the_answer_follows_the_question() -> None:
    """Behind a question that fits stands its answer; behind a statement that fits stands nothing of note."""
    built, index = build(
        ["which mountain did you climb?", "the tall one", "x"],
        ["which mountain did you climb", "the tall one", "x"],
    )
    order = ranked(built, index, "mountain climb")

    assert order.index(1) < order.index(4)


def test_words_of_the_same_meaning_count_less_than_the_word() -> None:
    """A synonym leads to a turn, behind the turn with the word itself."""
    built, index = build(["my kid slept"], ["my child slept"], ["x"])

    assert ranked(built, index, "kid") == [0]
    assert ranked(built, index, "kid", alike={"kid": ("child",)}) == [0, 1]


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

    assert ranked(turns, index, "hiking march", dated={"march": ["00000001"]})[0] == 1


def test_the_named_speaker_is_favoured() -> None:
    """Turns of the only participant named come before equal ones."""
    turns, index = build(["we went hiking", "we went hiking"])

    assert ranked(turns, index, "hiking", spoken=[turns.ids[1]])[0] == 1
    assert ranked(turns, index, "hiking")[0] == 0


def test_what_is_hidden_neither_shows_nor_counts() -> None:
    """A hidden turn is not returned, and its words do not lead to its neighbours."""
    turns, index = build(["secret mountain", "how nice"], ["other mountain"])
    secret = turns.ids[0]

    assert ranked(turns, index, "secret mountain", hidden=secret) == [2]


@pytest.mark.parametrize("query", ["", "the of", "zebra", "?!"])
def test_a_query_without_known_words_ranks_nothing(query: str) -> None:
    """No word, no turn."""
    turns, index = build(["we went hiking"])

    assert ranked(turns, index, query) == []


def test_no_turns_is_no_error() -> None:
    """An empty memory has nothing to rank."""
    assert ranked(Built([]), Index(), "anything") == []


def test_light_words_rank_but_are_not_held() -> None:
    """A name leads to turns and answers nothing."""
    _, index = build(["Tom went hiking", "Tom slept"])
    found = rank(Turns(index), index, Wanted(("tom", "hike"), light={"tom"}), lambda _: False)

    assert found[0].coverage == 1.0
    alone = rank(Turns(index), index, Wanted(("tom",), light={"tom"}), lambda _: False)
    assert [turn.coverage for turn in alone] == [0.0, 0.0]


def test_terms_of_parts_have_the_place_of_their_id() -> None:
    """Elements of other kinds have no place among the turns."""
    turns, index = build(["we went hiking"])
    index.texts["C-00000000000abcde"] = Counter(words("hiking"))

    assert ranked(turns, index, "hiking") == [0]
