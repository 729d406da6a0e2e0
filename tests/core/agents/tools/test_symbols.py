"""Declared vocabulary: what may be named, how it is published, and that old names stay what they were."""

import pytest

from core.agents.tools.calls import Named
from core.agents.tools.schema import schema_text
from core.agents.tools.symbols import MAX_SYMBOLS, count, declare, versions
from core.model.log import SpaceMeta, Tier
from core.schema.environment import environment_of, initial_environment


def meta(instance: str = "one") -> SpaceMeta:
    """A new space's protected state."""
    return SpaceMeta("home", instance, "abcde", "alice", 0, Tier(4, 0), initial_environment())


def test_types_and_predicates_are_declared_in_the_spaces_own_package():
    """They are in force under exact references of one package version; the call says which."""
    found = declare(meta(), [Named("Recipe", "How a dish is made.")], [Named("cooked_by")])
    assert found.added == ("Recipe", "cooked_by")
    assert found.package == "kip://noema/learned/one@1.0.1"
    assert found.meta is not None
    env = environment_of(found.meta)
    assert env.type("Recipe").open
    cooked = env.predicate("cooked_by")
    assert (cooked.functional, cooked.open_world, cooked.object.kinds) == (False, True, ("concept",))
    assert "- Recipe: How a dish is made." in schema_text(env)


def test_a_later_version_adds_and_changes_nothing():
    """The next publication is one more version; the first one's names keep their references and stay in force."""
    first = declare(meta(), [Named("Recipe")], []).meta
    assert first is not None
    second = declare(first, [Named("Recipe"), Named("Dish")], [])
    assert (second.added, second.known) == (("Dish",), ("Recipe",))
    assert second.meta is not None
    env = environment_of(second.meta)
    assert env.type("Recipe", write=True).ref == "kip://noema/learned/one@1.0.1/Recipe"
    assert env.type("Dish", write=True).ref == "kip://noema/learned/one@1.0.2/Dish"
    assert (versions(second.meta), count(second.meta)) == ([1, 2], 2)


def test_what_is_known_is_left_out_silently():
    """A name that some active package has is not declared again, and nothing is published."""
    found = declare(meta(), [Named("Person"), Named("Place")], [Named("lives_in"), Named("prefers")])
    assert found.meta is None
    assert found.known == ("Person", "Place", "lives_in", "prefers")


@pytest.mark.parametrize(
    "name", ["recipe", "Recipe!", "Re cipe", "R_e", "Рецепт", "", "R" * 65, "Concept", "1Recipe"]
)
def test_a_malformed_type_is_rejected_by_name(name: str):
    """A bad name is in the rejected list with the reason, and the rest of the call succeeds."""
    found = declare(meta(), [Named(name), Named("Dish")], [])
    assert found.added == ("Dish",)
    assert [one["name"] for one in found.rejected] == [name[:64]]
    assert found.rejected[0]["reason"]


@pytest.mark.parametrize(
    "name", ["Cooked", "cooked-by", "cooked_", "_cooked", "9c", "", "c" * 65, "evidence"]
)
def test_a_malformed_predicate_is_rejected_by_name(name: str):
    """As for types."""
    found = declare(meta(), [], [Named(name), Named("cooked_by"), Named("cooked_by")])
    assert (found.added, found.known) == (("cooked_by",), ("cooked_by",))
    assert len(found.rejected) == 1


def test_a_space_declares_at_most_512_names():
    """Names over the cap are rejected; what other packages hold does not count."""
    names = [Named(f"Type{n}") for n in range(MAX_SYMBOLS + 3)]
    found = declare(meta(), names, [])
    assert len(found.added) == MAX_SYMBOLS
    assert [one["name"] for one in found.rejected] == ["Type512", "Type513", "Type514"]
    assert found.meta is not None
    more = declare(found.meta, [], [Named("one_more")])
    assert (more.meta, len(more.rejected)) == (None, 1)


def test_two_spaces_may_mean_two_things_by_one_name():
    """The package's id bears the space's instance, so one reference never names two contents."""
    one, two = declare(meta("a1"), [Named("Dish")], []), declare(meta("b2"), [Named("Dish")], [])
    assert one.package != two.package
