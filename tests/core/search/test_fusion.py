"""The ranking of turns: words, neighbours, session, dates, speaker, and nearness in meaning."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pytest

import core.search.fusion as fusion_module
import core.search.terms as terms_module
from core.model.elements import Evidence, Origin, Payload, System
from core.model.ids import Kind
from core.search.fusion import SESSIONS, rank
from core.search.terms import Wanted
from core.search.text import words
from core.search.turns import Turns

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
        return [found for found in self.texts if found[0] == "E" and (after is None or found[2:] > after[2:])]


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
    monkeypatch.setattr(terms_module, "LONG", 10)

    assert ranked(built, index, "met lake")[:2] == whole[:2] == [14, 15]
    assert len(ranked(built, index, "met lake")) == 2
    assert ranked(built, index, "met")  # nothing rarer: it is read after all


def test_few_turns_are_decoded() -> None:
    """Of all that have a word only the best are read, to see whether they ask."""
    built, index = build(["hiking " * (1 + n % 3) for n in range(300)])
    ranked(built, index, "hiking")

    assert 0 < len(index.got) <= 2 * fusion_module.DECODED


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


@dataclass
class Near:
    """Similarities by position: what a dense search gives."""

    turns: Built
    similar: dict[int, float]

    def of(self, ids: Collection[str]) -> dict[str, float]:
        """Of some turns."""
        known = {self.turns.ids[place]: score for place, score in self.similar.items()}
        return {element: known[element] for element in ids if element in known}

    def ranked(self, letters: str, limit: int | None = None) -> list[tuple[str, float]]:
        """Nearest first."""
        assert letters == "E"
        order = sorted(self.similar.items(), key=lambda pair: -pair[1])
        return [(self.turns.ids[place], score) for place, score in order[:limit]]

    def spread(self, letters: str) -> tuple[float, float]:
        """A plain scale."""
        assert letters == "E"
        return 0.0, 0.25


def test_what_is_near_in_meaning_is_found_without_a_common_word() -> None:
    """A turn that shares no word with the question comes if it is near, and where it stands decides nothing."""
    turns, index = build(["we went hiking", "x"], ["nothing", "y"], ["my hound barked", "z"])
    near = Near(turns, {4: 0.9, 0: 0.1})
    wanted = Wanted(("dog",))

    found = rank(Turns(index), index, wanted, lambda _: False, near)

    assert turns.ids.index(found[0].id) == 4
    assert found[0].near == pytest.approx(3.6)
    assert found[0].coverage == 0.0
    assert rank(Turns(index), index, wanted, lambda _: False) == []


def test_meaning_and_words_are_added_up() -> None:
    """Of turns with the same words the one that is nearer comes first, and its neighbourhood counts."""
    turns, index = build(["we went hiking", "x"], ["we went hiking", "x"], ["we went hiking", "x"])
    near = Near(turns, {0: 0.0, 1: 0.0, 2: 0.5, 3: 0.0, 4: 0.0, 5: 0.4})

    found = rank(Turns(index), index, Wanted(("hike",)), lambda _: False, near)

    order = [turns.ids.index(turn.id) for turn in found]
    assert order[0] == 2
    assert order.index(4) < order.index(0)


def test_a_turn_without_a_vector_is_taken_for_average() -> None:
    """Turns that nobody has embedded yet are ranked by their words, beside those that are near."""
    turns, index = build(["we went hiking"], ["we went hiking"], ["we went hiking"])
    found = rank(Turns(index), index, Wanted(("hike",)), lambda _: False, Near(turns, {1: 0.5, 2: -0.5}))

    assert [turns.ids.index(turn.id) for turn in found] == [1, 0, 2]
    assert [turn.near for turn in found] == [2.0, None, -2.0]


def test_what_is_hidden_is_not_near_either() -> None:
    """A hidden turn is not returned, and its meaning does not lift its neighbours."""
    turns, index = build(["secret", "x", "y"], ["z"])
    near = Near(turns, {0: 1.0, 1: 0.0, 2: 0.0, 3: 0.1})
    found = rank(Turns(index), index, Wanted(("dog",)), lambda one: one == turns.ids[0], near)

    assert [turns.ids.index(turn.id) for turn in found] == [3, 1, 2]
    assert [turn.score for turn in found[1:]] == [0.0, 0.0]


def test_only_sessions_of_the_nearest_turns_are_looked_at() -> None:
    """However large the memory, the turns ranked for their meaning are those of a bounded number of sessions."""
    turns, index = build(*[["x", "y", "z", "u", "v"] for _ in range(300)])
    near = Near(turns, {5 * n: 1 - n / 1000 for n in range(300)})
    found = rank(Turns(index), index, Wanted(("dog",)), lambda _: False, near)

    assert turns.ids.index(found[0].id) == 0
    assert len(found) == 5 * fusion_module.NEAREST


def test_a_turn_that_asks_stands_behind_one_that_tells() -> None:
    """Of turns that fit equally, one that ends in a question mark comes last."""
    turns, index = build(["did you go hiking?"], ["you did go hiking"])

    assert ranked(turns, index, "hiking") == [1, 0]
