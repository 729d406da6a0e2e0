"""What `pyodide_check.mjs` runs inside Pyodide; it runs the same under any Python with msgspec.

Imports every module of core, then writes a small memory through a Draft, folds it, finds it again by key, by
tuple and by word, and checks that the first state has not changed. Prints one line of JSON.
"""

import importlib
import json
import pkgutil
import platform
import sys

import msgspec

import core
from core.model.elements import Assertion, Citation, Concept, Evidence, Origin, Payload
from core.model.ids import make_salt
from core.model.literals import Ref
from core.model.log import Delta, SchemaEnvironment, SpaceMeta, Tier
from core.search.text import terms
from core.state.indexes import assertions_key, concept_key, tuple_key
from core.state.layer import Empty
from core.state.space import SpaceState
from core.transaction.draft import Draft


def modules() -> list[str]:
    """The name of every module of core, imported."""
    names = [each.name for each in pkgutil.walk_packages(core.__path__, "core.")]
    for name in names:
        importlib.import_module(name)
    return names


def remember() -> dict[str, object]:
    """One transaction: who said what, and on what evidence; then the questions it must answer."""
    now = 1_780_000_000_000
    meta = SpaceMeta(
        space_id="pyodide",
        instance="i",
        salt=make_salt(b"\x01\x02\x03\x04"),
        owner="ada",
        created_at=now,
        tier=Tier(tier=0, updated_at=now),
        schema=SchemaEnvironment(version=1, packages=()),
    )
    empty = SpaceState.on(Empty(), meta=meta, ver=1, seq=0, at=now)
    draft = Draft(empty, now=now, origin=Origin(principal="ada", channel="cli"))
    person = draft.ensure_concept("kip://x@1.0.0/Person", "ada", name="Ada")
    drink = draft.ensure_concept("kip://x@1.0.0/Drink", "tea", name="Green tea")
    said = draft.create(
        Evidence,
        evidence_class="user_statement",
        payload=Payload(mode="inline", inline="I prefer green tea in the morning."),
        content_digest="sha256:0",
    )
    claim = draft.ensure_proposition(person.id, "kip://x@1.0.0/prefers", Ref(drink.id))
    draft.create(
        Assertion,
        proposition=claim.id,
        asserted_by=person.id,
        stance="support",
        mode="stated",
        asserted_at=now,
        evidence=(Citation(said.id),),
    )
    delta = draft.finish()
    assert delta is not None
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(delta), type=Delta)
    assert again == delta, "a delta survives its own bytes"
    state = empty.apply(again)
    assert list(state.find(concept_key("kip://x@1.0.0/Person", "ada"))) == [person.id]
    assert list(state.find(tuple_key(person.id, "kip://x@1.0.0/prefers", Ref(drink.id)))) == [claim.id]
    assert len(state.find(assertions_key(claim.id))) == 1
    word = next(iter(terms("morning")))
    assert [element for element, _ in state.word(word)] == [said.id]
    assert isinstance(state.get(person.id), Concept)
    assert empty.get(person.id) is None, "the first state stays as it was"
    return {"ver": state.ver, "seq": state.seq, "elements": len(delta.puts)}


if __name__ == "__main__":
    names = modules()
    remembered = remember()
    facts = {
        "python": platform.python_version(),
        "platform": sys.platform,
        "msgspec": msgspec.__version__,
        "numpy": "numpy" in sys.modules,
        "modules": len(names),
        **remembered,
    }
    print(json.dumps(facts))
