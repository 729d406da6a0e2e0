"""Erasure: the bytes are gone from everywhere, history stays readable, and nothing brings them back."""

from __future__ import annotations

import pytest

import core.storage.compaction as compaction
from core.errors import NoemaError
from core.model.elements import Assertion, Citation, Evidence, Payload, Retention
from core.ports import Put, Unavailable
from core.service.commit import Fenced
from core.service.erasure import ErasureReceipt, Overtaken
from core.service.erasure_steps import JOB_MS
from core.service.values import Proposal
from core.state.space import SpaceState
from core.storage.layout import conversation_sk, fact_learning_sk, fact_upkeep_sk, purge_sk, space_pk
from core.storage.redaction import nothing_id
from core.transaction.draft import Draft
from tests.core.service.world import ORIGIN, SPACE, World, dump, evidence, until_clean
from tests.doubles import Crash, FailingObjects, FailingTable, Faults

SECRET = "the key is under the third flowerpot"
PK = space_pk(SPACE)


class Told:
    """A space in which a secret was told, cited, quoted in an outcome, compacted twice and put in a large commit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch | None = None) -> None:
        if monkeypatch is not None:
            monkeypatch.setattr(compaction, "MAX_ELEMENTS", 4)
        self.world = world = World()
        world.create()
        world.note("before")
        told = world.commit(self.tell, "tell")
        self.secret, self.claim = told.outcome["evidence"], told.outcome["claim"]
        world.upkeep.compact(SPACE, "first")
        for number in range(6):
            world.note(f"note {number}")
        noise = world.entropy.token(9000).hex()
        world.commit(
            world.changing(self.secret, media_type="text/plain; " + noise)
        )  # an object holds this one
        world.upkeep.compact(SPACE, "second")
        world.note("after")
        self.states = {ver: dump(world.spaces.load_at(SPACE, version=ver)) for ver in range(1, self.ver + 1)}

    @property
    def ver(self) -> int:
        return self.world.spaces.head(SPACE).ver

    def tell(self, state: SpaceState) -> Proposal:
        draft = Draft(state, now=self.world.clock.time, origin=ORIGIN)
        told = draft.create(Evidence, **evidence(SECRET))
        claim = draft.create(
            Assertion,
            proposition="P-0000000100000000",
            asserted_by="C-0000000100000000",
            stance="support",
            mode="stated",
            asserted_at=1,
            evidence=(Citation(told.id),),
        )
        outcome = {"evidence": told.id, "claim": claim.id, "said": SECRET}
        return Proposal(draft.finish({"summary": {"wrote": [told.id]}}), outcome=outcome)

    def places(self, text: str) -> list[str]:
        """Where a text still stands, as stored or unpacked."""
        return [place for place, plain in self.world.everything().items() if text.encode() in plain]

    def purge(self) -> Evidence:
        """Turn the secret into a stub, as KIP PURGE does."""
        payload = Payload("purged")
        self.world.commit(
            self.world.changing(self.secret, payload=payload, media_type="text/plain", state="purged")
        )
        stub = self.world.spaces.load(SPACE).get(self.secret)
        assert isinstance(stub, Evidence)
        return stub


def test_the_bytes_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the id nor the text of a removed element stands in any row or object, packed or not."""
    told = Told(monkeypatch)
    assert len(told.places(SECRET)) >= 5

    receipt = told.world.erasures.erase(SPACE, [told.secret], "owner", owner="run", needles=[SECRET])

    assert receipt.clean
    assert told.places(SECRET) == []
    assert told.places(told.secret) == []
    assert told.places(told.secret[2:]) == []
    assert (receipt.deltas, receipt.manifests, receipt.outcomes) == (2, 2, 1)
    assert receipt.segments >= 2
    assert receipt.objects >= 5


def test_everything_else_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """All other elements stay, now and at every version; a citation of the removed one cites nothing."""
    told = Told(monkeypatch)

    told.world.erasures.erase(SPACE, [told.secret], "owner", owner="run")

    fresh = told.world.again()
    for ver, before in told.states.items():
        after = dump(fresh.spaces.load_at(SPACE, version=ver))
        assert after.keys() == before.keys() - {told.secret}
        for found, element in after.items():
            if found != told.claim:
                assert element == before[found]
    claim = fresh.spaces.load(SPACE).get(told.claim)
    assert claim.evidence == (Citation(nothing_id(told.secret)),)


def test_the_chain_holds_over_a_redaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """A redacted commit keeps its digest and loses the salt that could confirm a guess."""
    told = Told(monkeypatch)
    before = told.world.upkeep.verify_chain(SPACE)

    told.world.erasures.erase(SPACE, [told.secret], "owner", owner="run")

    after = told.world.upkeep.verify_chain(SPACE)
    rows = [row for _, row in told.world.upkeep.log_rows(SPACE) if "redacted" in row]
    assert before.broken is None
    assert (after.broken, after.redacted) == (None, 2)
    assert len(rows) == 2
    assert not any("salt" in row for row in rows)


def test_a_stub_stays_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """After KIP PURGE the id stays, as a stub, at every point of history; the text is nowhere."""
    told = Told(monkeypatch)
    stub = told.purge()

    receipt = told.world.erasures.erase(SPACE, [told.secret], "owner", owner="run", needles=[SECRET])

    fresh = told.world.again()
    assert receipt.clean
    assert told.places(SECRET) == []
    assert fresh.spaces.load(SPACE).get(told.secret) == stub
    for ver in range(3, told.ver + 1):
        assert fresh.spaces.load_at(SPACE, version=ver).get(told.secret) == stub
    assert fresh.spaces.load(SPACE).get(told.claim).evidence == (Citation(told.secret),)
    assert list(fresh.spaces.load(SPACE).word("flowerpot")) == []


def test_a_warm_cache_does_not_serve_what_was_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that had the space open sees the erasure at its next read."""
    told = Told(monkeypatch)
    reader = told.world.again()
    assert reader.spaces.load(SPACE).get(told.secret) is not None

    told.world.erasures.erase(SPACE, [told.secret], "owner", owner="run")

    assert reader.spaces.load(SPACE).get(told.secret) is None
    assert list(reader.spaces.load(SPACE).word("flowerpot")) == []


def test_a_warm_process_does_not_keep_what_was_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even unreachable: the pieces of segments that a process holds in memory go with the rest."""
    told = Told(monkeypatch)
    reader = told.world.again()
    dump(reader.spaces.load(SPACE))
    held = reader.spaces.pieces._cache
    assert any(SECRET.encode() in bytes(getattr(piece, "records", b"")) for piece, _ in held._held.values())

    told.world.erasures.erase(SPACE, [told.secret], "owner", owner="run")
    dump(reader.spaces.load(SPACE))

    assert held._held
    assert not any(
        SECRET.encode() in bytes(getattr(piece, "records", b"")) for piece, _ in held._held.values()
    )
    assert held.bytes_held == sum(cost for _, cost in held._held.values())


def test_work_begun_before_cannot_land_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease held before the erasure writes nothing after it; new work begins with a new lease."""
    told = Told(monkeypatch)
    fence = told.world.leases.acquire(SPACE, "formation", "worker", 10**9)

    told.world.erasures.erase(SPACE, [told.secret], "owner", owner="run")

    with pytest.raises(Fenced):
        told.world.note(SECRET, fence=fence)
    assert told.world.leases.acquire(SPACE, "formation", "next", 1000) is not None
    assert told.places(SECRET) == []


def test_a_retry_after_the_erasure_is_still_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome's text is gone, but the request is not carried out a second time."""
    told = Told(monkeypatch)
    told.world.erasures.erase(SPACE, [told.secret], "owner", owner="run")
    ver = told.ver

    again = told.world.commit(told.tell, "tell")

    assert again.replayed
    assert again.outcome is None
    assert told.ver == ver
    assert told.places(SECRET) == []


def test_what_remains_elsewhere_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A needle that other elements hold is found and named; an erasure never claims more than it did."""
    told = Told(monkeypatch)
    told.world.note(f"somebody wrote down that {SECRET}")

    receipt = told.world.erasures.erase(SPACE, [told.secret], "owner", owner="run", needles=[SECRET])

    assert not receipt.clean
    assert list(receipt.found) == told.places(SECRET) == [f"D#{told.ver:012d}"]


def test_conversations_go_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A named conversation goes with its body; others stay, and so does what another text in its row happens to name."""
    told = Told(monkeypatch)
    told.world.objects.put(f"{SPACE}/c/formation/9-x", b"another's")
    for number in (1, 2):
        told.world.objects.put(f"{SPACE}/c/formation/{number}-x", SECRET.encode())
        row = {"status": "completed", "body_key": f"{SPACE}/c/formation/{number}-x"}
        row["thread"] = f"{SPACE}/c/formation/9-x"
        told.world.table.transact([Put(PK, conversation_sk("formation", number), row)])

    receipt = told.world.erasures.erase(
        SPACE, [told.secret], "owner", owner="run", needles=[SECRET], conversations=[("formation", 1)]
    )

    assert receipt.conversations == 1
    assert told.world.table.get(PK, conversation_sk("formation", 1)) is None
    assert receipt.found == (f"{SPACE}/c/formation/2-x",)
    assert told.world.objects.get(f"{SPACE}/c/formation/9-x") is not None


def test_the_receipt_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The receipt can be read again, counts what was done, and names ids only by their digests."""
    told = Told(monkeypatch)

    receipt = told.world.erasures.erase(SPACE, [told.secret], "owner", owner="run", needles=[SECRET])

    kept = told.world.again().erasures.receipt(SPACE, 1)
    assert kept == receipt
    assert (kept.by, kept.kind, kept.needles, len(kept.ids)) == ("owner", "elements", 1, 1)
    assert kept.rows_scanned > 10
    assert kept.objects_scanned > 5
    assert told.world.erasures.receipt(SPACE, 2) is None


def test_erasing_what_is_not_there_is_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that no element has erases nothing, and twice is as good as once."""
    told = Told(monkeypatch)
    told.world.erasures.erase(SPACE, [told.secret], "owner", owner="run 1")
    before = dump(told.world.spaces.load(SPACE))

    again = told.world.erasures.erase(SPACE, [told.secret, "C-zzzzzzzz000aaaaa"], "owner", owner="run 2")

    assert (again.clean, again.deltas, again.segments, again.pgen) == (True, 0, 0, 2)
    assert dump(told.world.again().spaces.load(SPACE)) == before


def test_a_legal_hold_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """An element under legal hold is not erased, and nothing else of the request is."""
    told = Told(monkeypatch)
    told.world.commit(told.world.changing(told.secret, retention=Retention(legal_hold=True)))

    with pytest.raises(NoemaError) as failure:
        told.world.erasures.erase(SPACE, [told.claim, told.secret], "owner", owner="run")

    assert failure.value.code == "LegalHoldConflict"
    assert told.world.spaces.load(SPACE).get(told.claim) is not None


@pytest.mark.parametrize("ids", [["nonsense"], ["C-"], [""], ["C-zzzzzzzz000aaaaa"] * 1001])
def test_bad_ids_are_refused(ids: list[str]) -> None:
    """What is not an element id, or too many of them, is refused before anything is touched."""
    told = Told()

    with pytest.raises(NoemaError) as failure:
        told.world.erasures.erase(SPACE, ids, "owner", owner="run")

    assert failure.value.code == "InvalidInput"
    assert told.world.spaces.head(SPACE).pgen == 0


def test_nobody_reads_or_writes_meanwhile() -> None:
    """While an erasure runs the space is unavailable for a moment, and a writer waits for its end."""
    told = Told()
    seen = []

    class Watching(FailingTable):
        def transact(self, writes: object) -> None:
            self.table.transact(writes)
            try:
                told.world.spaces.load(SPACE)
            except NoemaError as error:
                seen.append(error.code)

    run = told.world.again(table=Watching(told.world.table))
    run.erasures.erase(SPACE, [told.secret], "owner", owner="run")

    assert set(seen) == {"ServiceUnavailable"}
    assert told.world.spaces.load(SPACE).ver == told.ver


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("stub", [False, True], ids=["removed", "stub"])
def test_an_erasure_that_dies_anywhere_is_finished(
    after: bool, stub: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash at any call, resuming ends with the same result as if nothing had happened."""

    def run(at: int) -> bool:
        told = Told(monkeypatch)
        if stub:
            told.purge()
        faults = Faults([at], after=after, error=Crash)
        process = told.world.again(
            table=FailingTable(told.world.table, faults), objects=FailingObjects(told.world.objects, faults)
        )
        crashed = False
        try:
            process.erasures.erase(SPACE, [told.secret], "owner", owner="unlucky", needles=[SECRET])
        except Crash:
            crashed = True
        told.world.clock.advance(JOB_MS + 1000)
        told.world.erasures.resume(SPACE, "lucky")
        if crashed and told.world.spaces.head(SPACE).pgen == 0:  # it died before it began
            told.world.erasures.erase(SPACE, [told.secret], "owner", owner="again", needles=[SECRET])

        receipt = told.world.erasures.receipt(SPACE, 1)
        assert isinstance(receipt, ErasureReceipt)
        assert receipt.clean
        assert told.places(SECRET) == []
        assert bool(told.places(told.secret)) == stub
        assert told.world.upkeep.verify_chain(SPACE).broken is None
        assert len(dump(told.world.again().spaces.load(SPACE))) == 10 - (not stub)
        assert told.world.spaces.load_at(SPACE, version=4).ver == 4
        told.world.note("life goes on")
        return crashed

    assert until_clean(run) > 15


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_erasure_settles_writes_without_an_answer(after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that gets no answer is looked for, and counted once."""

    def run(at: int) -> bool:
        told = Told(monkeypatch)
        faults = Faults([at], after=after)
        process = told.world.again(table=FailingTable(told.world.table, faults))

        receipt = process.erasures.erase(SPACE, [told.secret], "owner", owner="run", needles=[SECRET])

        assert receipt.clean
        assert (receipt.deltas, receipt.manifests, receipt.outcomes) == (2, 2, 1)
        return faults.count > at

    assert until_clean(run) > 5


def test_a_run_that_was_overtaken_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that slept while another finished its job cannot write over what was committed since."""
    told = Told(monkeypatch)
    once = iter([True])

    class Sleeps(FailingObjects):
        def put(self, key: str, body: bytes) -> None:
            super().put(key, body)
            if next(once, False):
                told.world.clock.advance(JOB_MS + 1)
                assert told.world.erasures.resume(SPACE, "second").clean
                told.world.note("committed since")

    sleeper = told.world.again(objects=Sleeps(told.world.objects))

    with pytest.raises(Overtaken):
        sleeper.erasures.erase(SPACE, [told.secret], "owner", owner="first", needles=[SECRET])

    assert told.world.again().names()[-1] == "committed since"
    assert told.places(SECRET) == []
    assert told.world.upkeep.verify_chain(SPACE).broken is None


def test_a_collector_spares_what_an_erasure_has_uploaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An erasure that takes hours keeps its new segments, though nothing refers to them yet."""
    told = Told(monkeypatch)

    class Slow(FailingObjects):
        def put(self, key: str, body: bytes) -> None:
            super().put(key, body)
            told.world.clock.advance(2 * 3_600_000)
            assert told.world.upkeep.collect_garbage(SPACE).removed == ()
            assert told.world.upkeep.thin_manifests(SPACE) == 0
            assert told.world.upkeep.trim_history(SPACE, keep_ms=1).floor == 1

    slow = told.world.again(objects=Slow(told.world.objects))

    assert slow.erasures.erase(SPACE, [told.secret], "owner", owner="run", needles=[SECRET]).clean
    assert len(dump(told.world.again().spaces.load(SPACE))) == 9


def test_a_collection_that_was_overtaken_removes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that slept before its collection does not take what its successor has just uploaded."""
    told = Told(monkeypatch)
    once = iter([True])

    class Sleeps(FailingObjects):
        def list(self, prefix: str) -> object:
            if next(once, False):
                told.world.clock.advance(JOB_MS + 1)
                assert told.world.erasures.resume(SPACE, "second").clean
            return super().list(prefix)

    sleeper = told.world.again(objects=Sleeps(told.world.objects))

    with pytest.raises(Overtaken):
        sleeper.erasures.erase(SPACE, [told.secret], "owner", owner="first")

    assert len(dump(told.world.again().spaces.load(SPACE))) == 9


def test_a_living_run_is_left_alone() -> None:
    """Resuming does nothing while a run shows signs of life, or when there is none."""
    told = Told()
    seen = []

    class Watching(FailingTable):
        def transact(self, writes: object) -> None:
            self.table.transact(writes)
            seen.append(told.world.erasures.resume(SPACE, "impatient"))

    assert told.world.erasures.resume(SPACE, "early") is None
    told.world.again(table=Watching(told.world.table)).erasures.erase(
        SPACE, [told.secret], "owner", owner="run"
    )

    assert seen
    assert set(seen) == {None}


def test_a_commit_that_stays_large_stays_an_object() -> None:
    """What is left of a large commit goes to a new object, and the old one is gone; small ones move into the row."""
    world = World()
    world.create()
    noise = world.entropy.token(9000).hex()
    secret, _ = world.commit(world.noting(SECRET, noise)).outcome["ids"]
    before = [key for key, _, _ in world.objects.list(f"{SPACE}/d/")]

    receipt = world.erasures.erase(SPACE, [secret], "owner", owner="run", needles=[SECRET])

    after = [key for key, _, _ in world.objects.list(f"{SPACE}/d/")]
    assert receipt.clean
    assert (len(before), len(after)) == (1, 1)
    assert before != after
    assert world.again().names() == [noise]
    assert world.upkeep.verify_chain(SPACE).broken is None


def test_many_pages_of_everything() -> None:
    """More commits, requests and manifests than one page holds are all looked through, and all deleted."""
    world = World()
    world.create()
    ids = [world.note(f"{SECRET} {number}", f"key {number}").outcome["ids"][0] for number in range(120)]
    world.upkeep.compact(SPACE, "run")

    receipt = world.erasures.erase(SPACE, ids[:110], "owner", owner="run 1", needles=[f"{SECRET} 109"])

    assert (receipt.clean, receipt.deltas, receipt.outcomes) == (True, 110, 110)
    assert len(world.again().names()) == 10
    assert world.erasures.delete_space(SPACE, "owner", owner="run 2").clean
    assert set(world.everything()) == {"HEAD", purge_sk(2)}


def test_what_late_writers_leave_is_swept_before_the_next_life() -> None:
    """However much was left behind, the new space begins with nothing but its own rows."""
    told = Told()
    told.world.erasures.delete_space(SPACE, "owner", owner="run")
    for number in range(250):
        told.world.table.transact([Put(PK, conversation_sk("formation", number), {"late": True})])

    told.world.create()

    assert set(told.world.everything()) == {"HEAD", purge_sk(1), f"D#{told.ver:012d}"}


def test_a_needle_may_be_anywhere_in_a_row() -> None:
    """The scan looks at text, bytes and keys of rows that no code of the log wrote."""
    told = Told()
    told.world.table.transact(
        [
            Put(PK, "Z#text", {"a": 1, "b": f"… {SECRET}"}),
            Put(PK, "Z#bytes", {"c": b"\x01\x01" + SECRET.encode()}),
        ]
    )

    receipt = told.world.erasures.erase(SPACE, [told.secret], "owner", owner="run", needles=[SECRET])

    assert receipt.found == ("Z#bytes", "Z#text")


def test_an_order_that_is_too_large_is_refused() -> None:
    """An erasure whose job does not fit a row is refused before anything is touched."""
    told = Told()

    with pytest.raises(NoemaError) as failure:
        told.world.erasures.erase(SPACE, [told.secret], "owner", owner="run", needles=["x" * 400_000])

    assert failure.value.code == "InvalidInput"
    assert told.world.spaces.head(SPACE).state == "active"


def test_a_space_that_moved_is_asked_again() -> None:
    """A commit between the look and the beginning of an erasure is told as a reason to ask again."""
    told = Told()
    once = iter([True])

    def interfere(_: object) -> None:
        if next(once, False):
            told.world.note("meanwhile")

    process = told.world.again(table=FailingTable(told.world.table, before_transact=interfere))

    with pytest.raises(NoemaError) as failure:
        process.erasures.erase(SPACE, [told.secret], "owner", owner="run")

    assert failure.value.spec.retry == "safe_same_request"
    assert process.erasures.erase(SPACE, [told.secret], "owner", owner="run").clean


# --- whole spaces


def test_a_deleted_space_leaves_a_tombstone_only() -> None:
    """Every row and object is gone but HEAD, which says little, and the receipt."""
    told = Told()
    ver = told.ver
    told.world.objects.put(f"{SPACE}/c/formation/1", SECRET.encode())

    receipt = told.world.erasures.delete_space(SPACE, "owner", owner="run")

    assert receipt.clean
    assert set(told.world.everything()) == {"HEAD", purge_sk(1)}
    assert told.places(SECRET) == []
    assert told.world.spaces.ids() == []
    assert told.world.spaces.read_head(SPACE, deleted=True).ver == ver
    for read in (told.world.spaces.load, told.world.spaces.head):
        with pytest.raises(NoemaError) as failure:
            read(SPACE)
        assert failure.value.code == "NotFoundOrNotVisible"


def test_a_deleted_space_cannot_be_written_or_deleted_again() -> None:
    """Writers, warm or with a lease, and a second deletion find no space."""
    told = Told()
    writer = told.world.again()
    writer.spaces.load(SPACE)
    told.world.erasures.delete_space(SPACE, "owner", owner="run")

    for act in (
        lambda: writer.note("zombie"),
        lambda: told.world.erasures.delete_space(SPACE, "o", owner="r"),
    ):
        with pytest.raises(NoemaError) as failure:
            act()
        assert failure.value.code == "NotFoundOrNotVisible"
    assert told.world.leases.acquire(SPACE, "formation", "zombie", 1000) is None


def test_a_new_life_inherits_nothing() -> None:
    """The id may be used again: another instance and salt, versions that go on, no old state, ids or leases."""
    told = Told()
    old = told.world.spaces.load(SPACE)
    delta = told.world.spaces.deltas(SPACE, old.ver - 1, 1)[0]
    fence = told.world.leases.acquire(SPACE, "formation", "worker", 10**9)
    told.world.commit(lambda _: Proposal(None, head={"formed": 17}))
    told.world.erasures.delete_space(SPACE, "owner", owner="run")
    told.world.table.transact([Put(PK, "T#late", {"left": "by a late writer"})])

    born = told.world.create()

    state, head = told.world.spaces.load(SPACE), told.world.spaces.head(SPACE)
    assert born.ver == old.ver + 1
    assert (state.seq, head.born, head.floor, head.number("formed")) == (0, born.ver, born.ver, 0)
    assert state.meta.instance != old.meta.instance
    assert state.meta.salt != old.meta.salt
    assert dump(state) == {}
    assert told.world.table.get(PK, "T#late") is None
    with pytest.raises(Fenced):
        told.world.note("zombie", fence=fence)
    with pytest.raises(NoemaError):
        told.world.spaces.load_at(SPACE, version=old.ver)
    with pytest.raises(NoemaError):
        told.world.spaces.load_at(SPACE, tx=delta.tx_id)
    assert told.world.note("new").outcome["ids"][0][-5:] == state.meta.salt
    assert told.world.upkeep.verify_chain(SPACE).broken is None
    assert [delta.ver for delta in told.world.spaces.deltas(SPACE, 0, 1)] == [born.ver]
    assert told.world.spaces.ids() == [SPACE]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_deletion_that_dies_anywhere_is_finished(after: bool) -> None:
    """From the first step on the space is gone to everybody; resuming removes what is left."""

    def run(at: int) -> bool:
        told = Told()
        faults = Faults([at], after=after, error=Crash)
        process = told.world.again(
            table=FailingTable(told.world.table, faults), objects=FailingObjects(told.world.objects, faults)
        )
        crashed = False
        try:
            process.erasures.delete_space(SPACE, "owner", owner="unlucky")
        except Crash:
            crashed = True
        if told.world.spaces.read_head(SPACE, deleted=True).pgen == 0:
            told.world.erasures.delete_space(SPACE, "owner", owner="again")
        with pytest.raises(NoemaError) as failure:
            told.world.again().spaces.load(SPACE)
        assert failure.value.code == "NotFoundOrNotVisible"
        told.world.clock.advance(JOB_MS + 1000)
        told.world.erasures.resume(SPACE, "lucky")

        assert set(told.world.everything()) == {"HEAD", purge_sk(1)}
        assert told.world.create().ver == told.ver
        return crashed

    assert until_clean(run) > 4


def test_a_deletion_that_was_overtaken_cannot_touch_the_next_life() -> None:
    """A run that slept while another finished and the id was used again removes nothing of the new space."""
    told = Told()
    noise = told.world.entropy.token(9000).hex()
    once = iter([True])

    class Sleeps(FailingObjects):
        def list(self, prefix: str) -> object:
            if next(once, False):
                told.world.clock.advance(JOB_MS + 1)
                assert told.world.erasures.resume(SPACE, "second").clean
                told.world.create()
                told.world.note(noise)  # an object holds it
            return super().list(prefix)

    sleeper = told.world.again(objects=Sleeps(told.world.objects))

    with pytest.raises(Overtaken):
        sleeper.erasures.delete_space(SPACE, "owner", owner="first")

    assert told.world.again().names() == [noise]


def test_a_store_that_stops_answering_leaves_a_job() -> None:
    """Without answers an erasure ends with an error that is safe to try again, and can be resumed."""
    told = Told()
    faults = Faults(range(3, 1000), error=Unavailable)
    process = told.world.again(table=FailingTable(told.world.table, faults))

    with pytest.raises(NoemaError) as failure:
        process.erasures.erase(SPACE, [told.secret], "owner", owner="run", needles=[SECRET])

    assert failure.value.code == "ServiceUnavailable"
    told.world.clock.advance(JOB_MS + 1)
    assert told.world.erasures.resume(SPACE, "next").clean
    assert told.places(SECRET) == []


def test_runs_that_rest_on_what_is_erased_go_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever erases, a KIP purge and the pruning of facts too: an answer that quoted the words goes; others stay."""
    told = Told(monkeypatch)
    for number, cites in enumerate((told.secret, f"E-0 {told.claim}", "E-0000000900000000"), 1):
        row = {"status": "completed", "answer": SECRET if number < 3 else "Else.", "cites": cites}
        for collection in ("recall", "maintenance"):
            told.world.table.transact([Put(PK, conversation_sk(collection, number), row)])

    receipt = told.world.erasures.erase(
        SPACE, [told.secret, told.claim], "owner", owner="run", needles=[SECRET]
    )

    assert receipt.clean
    assert receipt.conversations == 4
    assert told.world.table.get(PK, conversation_sk("recall", 3)) is not None


def test_words_that_queries_taught_outlast_no_erasure(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may be words of what is erased; counts and schedules, which hold none, stay."""
    told = Told(monkeypatch)
    kept = fact_upkeep_sk("agent")
    told.world.table.transact(
        [Put(PK, fact_learning_sk("agent"), {"pending": SECRET.encode()}), Put(PK, kept, {"at": 1})]
    )

    receipt = told.world.erasures.erase(SPACE, [told.secret], "owner", owner="run", needles=[SECRET])

    assert receipt.clean
    assert told.world.table.get(PK, fact_learning_sk("agent")) is None
    assert told.world.table.get(PK, kept) is not None
