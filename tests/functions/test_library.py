"""`Memory` over a directory and over a service: one suite, because both mean the same."""

import json

import httpx
import pytest

from core.errors import NoemaError
from functions.library import SHARED, Memory, Remote
from tests.functions.world import World


class Wire:
    """A service behind httpx. `lose` answers are dropped after the service has given them."""

    def __init__(self) -> None:
        self.world = World().make_space("memory", tier=4)
        self.lose = 0
        self.requests = 0

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        given = self.world.ask(
            request.method,
            request.url.path,
            request.content or None,
            token=self.world.token(aud="memory"),
            headers={name: value for name, value in request.headers.items() if name != "authorization"},
            query=request.url.query.decode(),
        )
        if self.lose:
            self.lose -= 1
            raise httpx.ReadError("the answer was lost")
        return httpx.Response(given.status, headers=given.headers, content=given.body)

    def memory(self) -> Memory:
        client = httpx.Client(transport=httpx.MockTransport(self.answer))
        return Memory("", transport=Remote("https://api.example.org", "memory", "t", client=client))


@pytest.fixture(params=["directory", "service"])
def memory(request, tmp_path):
    made = Memory(tmp_path / "memory") if request.param == "directory" else Wire().memory()
    with made:
        yield made


def code_of(call, *args, **more):
    with pytest.raises(NoemaError) as refused:
        call(*args, **more)
    return refused.value.code


def test_what_is_remembered_is_recalled(memory):
    """The agent's texts, the shared ones, and both."""
    made = memory.remember("ann", "Deploys run on Friday.", confidence="verified")
    memory.remember("ann", "Ann likes tea.")
    memory.remember_shared("Deploys need two people.")
    assert (made.text, made.confidence, made.agent_id) == ("Deploys run on Friday.", "verified", "ann")
    assert memory.recall("ann", "when do deploys run", top_k=1) == ["Deploys run on Friday."]
    assert memory.recall_shared("deploys") == ["Deploys need two people."]
    assert set(memory.recall_all("ann", "deploys", top_k=3)) == {
        "Deploys run on Friday.",
        "Deploys need two people.",
        "Ann likes tea.",
    }
    assert memory.agents() == sorted([SHARED, "ann"])


def test_options_are_kept_apart_from_their_absence(memory):
    """An explicit 0 is told in the policy; left out, there is none; nonsense is refused."""
    memory.remember("ann", "Ann likes tea.", confidence="unverified")
    assert memory.recall_with_options("ann", "tea").retrieval is None
    told = memory.recall_with_options("ann", "tea", confidence_weight=0).retrieval
    assert told.confidence_weight == 0
    assert memory.recall("ann", "tea", min_confidence="inferred") == []
    assert code_of(memory.recall, "ann", "tea", min_confidence="sure") == "InvalidInput"
    assert code_of(memory.recall, "ann", "tea", confidence_weight=0.9) == "InvalidInput"
    assert code_of(memory.recall, "ann", "tea", confidence_weight=float("nan")) == "InvalidInput"
    assert code_of(memory.remember, "ann", "") == "InvalidInput"
    assert code_of(memory.remember, "ann", "x" * 300_000) == "PayloadTooLarge"
    assert code_of(memory.remember, "ann", "\ud800") == "InvalidInput"


def test_facts_live_through_their_changes(memory):
    """Revise, pin, forget, delete; the list and the counts follow."""
    memory.remember("ann", "Ann lives in Paris.")
    made = memory.revise("ann", "Ann lives in Paris.", "Ann lives in Rome.")
    assert made.confidence == "inferred"
    assert memory.pin("ann", "Ann lives in Rome.") == (made.id,)
    assert memory.facts("ann")[0].pinned
    assert memory.unpin("ann", "Ann lives in Rome.") == (made.id,)
    assert [fact.text for fact in memory.facts("ann")] == ["Ann lives in Rome."]
    assert len(memory.facts("ann", retired=True)) == 2
    assert memory.forget("ann", "Ann lives in Rome.") == (made.id,)
    assert memory.recall("ann", "Ann") == []
    assert memory.delete("ann", made.id) is True
    assert memory.delete("ann", made.id) is False
    assert memory.stats("ann").fact_count == 1
    assert code_of(memory.forget, "ann", "nothing like it") == "NotFoundOrNotVisible"


def test_receipts_batches_aliases_and_links(memory):
    """Explain has the same order; a batch merges; an alias finds; a link has an id."""
    for text in ("Postgres holds the ledger.", "Deploys run on Friday.", "Ann likes tea."):
        memory.remember("ann", text)
    memory.alias("ann", "db", ["postgres"])
    assert memory.recall("ann", "db")[0] == "Postgres holds the ledger."
    assert [each.text for each in memory.explain("ann", "db")] == memory.recall("ann", "db")
    assert memory.explain("ann", "db")[0].ranks.keyword_rank == 1
    batch = memory.recall_batch("ann", ["tea", "deploys"], top_k=1)
    assert set(batch.merged) == {"Ann likes tea.", "Deploys run on Friday."}
    assert memory.link("ann", "Acme", "Payments").startswith("P-")
    assert [fact.confidence for fact in memory.remember_extracted("bob", '["One.", "Two."]')] == [
        "unverified",
        "unverified",
    ]


def test_consolidation_and_checkpoints(memory):
    """A consolidation runs; a saved state comes back."""
    memory.remember("ann", "Ann likes tea.")
    assert memory.consolidate("ann").ran
    assert memory.latest_checkpoint("ann") is None
    saved = memory.save_checkpoint("ann", {"step": 3}, metadata={"source": "test"})
    assert memory.latest_checkpoint("ann") == saved
    assert saved.state == {"step": 3}


def test_files_go_out_and_come_in(memory, tmp_path):
    """What is exported imports into another memory; importing it twice adds nothing."""
    memory.remember("ann", "Ann likes tea.")
    memory.remember("ann", "Ann rows.")
    text = memory.export()["memories.json"]
    with Memory(tmp_path / "other") as other:
        assert other.import_file(text).added == 2
        assert other.import_file(text).added == 0
        assert json.loads(other.export()["memories.json"])[0]["id"] == json.loads(text)[0]["id"]
    assert set(memory.export("obsidian")) >= {"_index.md", "Ann likes tea.md", "memory.canvas"}


def test_a_closed_memory_says_so(memory):
    """Closing twice is fine; anything else afterwards is a ValueError."""
    memory.close()
    memory.close()
    with pytest.raises(ValueError, match="closed"):
        memory.recall("ann", "tea")


def test_a_directory_keeps_what_it_was_told(tmp_path):
    """Opened again, it is all there; two spaces of a directory are apart."""
    with Memory(tmp_path / "m") as memory:
        memory.remember("ann", "Ann likes tea.")
    with Memory(tmp_path / "m") as again, Memory(tmp_path / "m", space="other") as other:
        assert again.recall("ann", "tea") == ["Ann likes tea."]
        assert other.recall("ann", "tea") == []


def test_a_lost_answer_is_asked_for_again_and_nothing_is_kept_twice():
    """A keyed write whose answer was lost is sent again under its key; one without says that it does not know."""
    wire = Wire()
    memory = wire.memory()
    wire.lose = 1
    memory.remember("ann", "Ann likes tea.")
    assert memory.stats("ann").fact_count == 1
    wire.lose = 9
    assert code_of(memory.pin, "ann", "Ann likes tea.") == "OutcomeUnknown"
    assert code_of(memory.facts, "ann") == "ServiceUnavailable"


def test_answers_that_are_no_services_are_told_apart():
    """A page of another server is not taken for an answer; a refusal keeps its code and hint."""
    client = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(404, text="<html>")))
    stranger = Memory("", transport=Remote("https://x.example", "memory", None, client=client))
    assert code_of(stranger.recall, "ann", "tea") == "ServiceUnavailable"
    wire = Wire()
    client = httpx.Client(transport=httpx.MockTransport(wire.answer))
    lost = Memory("", transport=Remote("https://api.example.org", "nowhere", "t", client=client))
    assert code_of(lost.recall, "ann", "tea") == "Unauthenticated"


def test_a_directory_ranks_by_what_it_is_told_to(tmp_path):
    """`none`: words and age alone, and no vector rank; another name is refused before anything is made."""
    with Memory(tmp_path / "plain", embedder="none") as memory:
        memory.remember("ann", "Ann bought a car.")
        assert memory.explain("ann", "automobile")[0].ranks.vector_rank == 0
    with pytest.raises(ValueError, match="NOEMA_EMBEDDER"):
        Memory(tmp_path / "other", embedder="magic")
    assert not (tmp_path / "other").exists()


def test_a_directory_ranks_by_meaning_where_it_can(tmp_path):
    """Without a word the static embedder is used, if its weights are installed."""
    pytest.importorskip("wordllama")
    with Memory(tmp_path) as memory:
        memory.remember("ann", "Ann bought a car.")
        assert memory.explain("ann", "automobile")[0].ranks.vector_rank == 1


def test_checkpoints_are_listed_read_and_erased(memory):
    """The latest first; one by its id, only by its agent; erased it is gone, and the one before it is the latest."""
    first, second = memory.save_checkpoint("ann", {"step": 1}), memory.save_checkpoint("ann", {"step": 2})
    assert {each.id for each in memory.checkpoints("ann")} == {first.id, second.id}
    assert memory.checkpoint("ann", first.id).state == {"step": 1}
    for agent, checkpoint_id in (("bob", first.id), ("ann", "01J0000000000000000000TEA1")):
        with pytest.raises(NoemaError) as missing:
            memory.checkpoint(agent, checkpoint_id)
        assert missing.value.code == "NotFoundOrNotVisible"
    assert memory.delete_checkpoint("bob", second.id) is False
    assert memory.delete_checkpoint("ann", second.id) is True
    assert memory.delete_checkpoint("ann", second.id) is False
    assert memory.latest_checkpoint("ann").id == first.id
