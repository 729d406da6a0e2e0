"""Every name under which something is stored: row keys and object keys, spelled here and nowhere else.

What lives here: functions from values to keys, and the padding that makes keys sort like the numbers in them.
What must never live here: what the rows and objects contain. One table holds everything small, in partitions:

* `S#<space>`: all rows of a space (its HEAD, log, idempotency, manifests, conversations, tokens, erasures);
* `SPACES`: the directory, one row for each space that exists;
* `DUE`: which space wants background work, and when;
* `SERVICE`: what the deployment itself keeps: the key that signs cursors.

The bucket holds what is big, below `<space>/`. Keys that a writer makes end in random characters, so no key is
ever written twice and an object that lost its race can never be taken for one that won.
"""

from __future__ import annotations

import hashlib
from typing import Final

from core.model.ids import part_of

HEAD: Final = "HEAD"
DIRECTORY_PK: Final = "SPACES"
DUE_PK: Final = "DUE"
SERVICE_PK: Final = "SERVICE"
SIGNING_SK: Final = "signing_key"
PROOF_SK: Final = "proof_key"  # the seed of the key that signs what leaves the deployment
ROUND_SK: Final = "round"  # in `DUE`: where the caretaker's round over all spaces stands

VERSION_WIDTH: Final = 12  # digits of a log version or purge generation
NUMBER_WIDTH: Final = 16  # digits of a conversation id
MAX_VERSION: Final = 10**VERSION_WIDTH - 1
_VECTORS: Final = ".v/"
_LAST: Final = "\U0010ffff"  # sorts after every key that begins with what is before it


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


# --- rows


def space_pk(space_id: str) -> str:
    """The partition that holds all rows of a space."""
    return f"S#{space_id}"


def delta_sk(ver: int) -> str:
    """The row of one commit of the log."""
    return f"D#{ver:0{VERSION_WIDTH}d}"


def delta_version(sk: str) -> int:
    """The log version in a delta row's key."""
    return int(sk[2:])


def manifest_sk(ver: int) -> str:
    """The row of the manifest that holds the state at `ver`."""
    return f"M#{ver:0{VERSION_WIDTH}d}"


def idempotency_sk(scope: str, key: str) -> str:
    """The row that remembers what became of a request; scope and key may be long, so they are hashed.

    The transactions of a request that is several stand behind the row of its key, in their order.
    """
    whole, place = part_of(key)
    return f"I#{_digest(scope, whole)}" + ("" if place is None else f"#{place:03d}")


def idempotency_parts(scope: str, key: str) -> tuple[str, str]:
    """First and last key of the rows of a request that is several transactions."""
    row = f"{idempotency_sk(scope, key)}#"
    return row, row + _LAST


def idempotency_place(sk: str) -> int:
    """The place of a transaction in its request, from the key of its row."""
    return int(sk.rpartition("#")[2])


def conversation_sk(collection: str, number: int) -> str:
    """The row of one conversation of a collection (formation, recall or maintenance)."""
    return f"C#{collection}#{number:0{NUMBER_WIDTH}d}"


def conversation_number(sk: str) -> int:
    """The id in a conversation row's key."""
    return int(sk.rpartition("#")[2])


def counter_sk(collection: str) -> str:
    """The row that counts a collection's ids."""
    return f"N#{collection}"


def token_sk(token: str) -> str:
    """The row of a space token; only the token's digest is ever stored."""
    return f"T#{_digest(token)}"


def token_name_sk(name: str) -> str:
    """The row that keeps a token name from being given twice; it points to the token's row."""
    return f"TN#{_digest(name)}"


def purge_sk(pgen: int) -> str:
    """The row of an erasure: its job while it runs, its receipt when it is done."""
    return f"P#{pgen:0{VERSION_WIDTH}d}"


def owed_sk(ver: int) -> str:
    """The row of an erasure that the purge committed as `ver` still owes."""
    return f"O#{ver:0{VERSION_WIDTH}d}"


def notes_sk(role: str) -> str:
    """The row of an agent's own working notes."""
    return f"AN#{role}"


def again_sk(number: int) -> str:
    """The row that asks for a conversation behind the high-water mark to be formed again."""
    return f"Q#{number:0{NUMBER_WIDTH}d}"


def refusal_sk(day: str, *parts: str) -> str:
    """The row that counts refusals of one day (`2026-11-30`) that have the same parts."""
    return f"RF#{day}#{_digest(*parts)[:40]}"


def refusal_rows(day: str) -> tuple[str, str]:
    """The first and last possible key of refusals from a day on."""
    return f"RF#{day}", f"RF#{_LAST}"


def echo_sk() -> str:
    """The row that notes by digest what was served lately, beside the log."""
    return "E#served"


def fact_rows(agent_id: str, kind: str) -> tuple[str, str]:
    """The first and last possible key of what is kept beside the log of a namespace of facts.

    kind: `t` for recalls not yet counted, `c` for counts. The keys hold digests only, so that they tell nothing
    of what they stand for.
    """
    prefix = f"F#{_digest(agent_id)[:32]}#{kind}#"
    return prefix, f"{prefix}{_LAST}"


def fact_touch_sk(agent_id: str, at: int, suffix: str) -> str:
    """The row that says which facts one recall gave."""
    return f"{fact_rows(agent_id, 't')[0]}{at:0{NUMBER_WIDTH}d}-{suffix}"


def fact_counts_sk(agent_id: str, bucket: int) -> str:
    """The row that counts the recalls of one share of a namespace's facts."""
    return f"{fact_rows(agent_id, 'c')[0]}{bucket:02d}"


def fact_upkeep_sk(agent_id: str) -> str:
    """The row that says when a namespace of facts was last consolidated, and what became of its facts."""
    return f"F#{_digest(agent_id)[:32]}#u"


def fact_learning_sk(agent_id: str) -> str:
    """The row that keeps which words of an agent's queries seem to mean the same."""
    return f"F#{_digest(agent_id)[:32]}#v"


def is_fact_learning(sk: str) -> bool:
    """Whether a key is of such a row."""
    return sk.startswith("F#") and sk.endswith("#v")


def fact_schedule_sk() -> str:
    """The row that says when a space's facts are consolidated next."""
    return "F#schedule"


def fact_clock_sk(at: int, space_id: str) -> str:
    """The row in `DUE` that says the same, in order of time."""
    return f"factclock#{at:0{NUMBER_WIDTH}d}#{space_id}"


def fact_clock_rows(until: int) -> tuple[str, str]:
    """The first and last possible key of the spaces whose facts are due by a time."""
    return f"factclock#{0:0{NUMBER_WIDTH}d}#", f"factclock#{until:0{NUMBER_WIDTH}d}#{_LAST}"


def fact_clock_of(sk: str) -> tuple[int, str]:
    """The time and the space in such a key."""
    return clock_of(sk)


def fact_digest(fact_id: str) -> bytes:
    """What stands for a fact in these rows."""
    return hashlib.sha256(fact_id.encode("utf-8", "surrogatepass")).digest()[:8]


def maintenance_sk() -> str:
    """The row that says how far maintenance of a space has come, and what it counted."""
    return "U#maintenance"


def reading_sk(instance: str) -> str:
    """The row that counts recalls and probes of one life of a space."""
    return f"U#reading#{instance}"


def corrections_sk(actor: str) -> str:
    """The row that counts how often an actor's claims were superseded; the key holds a digest, and so no id."""
    return f"U#actor#{_digest(actor)}"


def byok_sk() -> str:
    """The row that says which model a space brings, with its sealed key."""
    return "K#model"


def ledger_sk(day: int) -> str:
    """The row that counts what a space spent on models in one day (days since 1970, UTC)."""
    return f"L#{day:06d}"


def ledger_total_sk() -> str:
    """The row that counts what a space ever spent on models."""
    return "L#total"


def clock_sk(at: int, space_id: str) -> str:
    """The row in `DUE` that says when a space's maintenance is to be looked at; in order of time."""
    return f"clock#{at:0{NUMBER_WIDTH}d}#{space_id}"


def clock_rows(until: int) -> tuple[str, str]:
    """The first and last possible key of what is due by a time."""
    return f"clock#{0:0{NUMBER_WIDTH}d}#", f"clock#{until:0{NUMBER_WIDTH}d}#{_LAST}"


def clock_of(sk: str) -> tuple[int, str]:
    """The time and the space in such a key."""
    _, at, space_id = sk.split("#")
    return int(at), space_id


def due_sk(work: str, space_id: str) -> str:
    """The row in `DUE` that says a space has work of a kind (formation, maintenance) waiting."""
    return f"{work}#{space_id}"


def recall_due_sk(space_id: str, number: int) -> str:
    """The row in `DUE` that says a question of a space waits to be answered."""
    return f"recall#{space_id}#{number:0{NUMBER_WIDTH}d}"


def recall_due_rows(space_id: str) -> tuple[str, str]:
    """The first and last possible key of the questions of a space that wait."""
    return f"recall#{space_id}#", f"recall#{space_id}#{_LAST}"


def recall_due_of(sk: str) -> tuple[str, int]:
    """The space and the number of the question in such a key."""
    _, space_id, number = sk.split("#")
    return space_id, int(number)


def due_rows(work: str) -> tuple[str, str]:
    """The first and last possible key of one kind of work in `DUE`."""
    return f"{work}#", f"{work}#{_LAST}"


def due_space(sk: str) -> str:
    """The space in a due row's key."""
    return sk.partition("#")[2]


def vectors_sk(model: str) -> str:
    """The row that says how far the vectors of a model have come."""
    return f"V#{model_digest(model)}"


def vector_rows(model: str, after: int, last: int) -> tuple[str, str]:
    """The first and last possible key of the rows with vectors of the commits after one version, up to another."""
    prefix = f"{vectors_sk(model)}#"
    return f"{prefix}{after + 1:0{VERSION_WIDTH}d}", f"{prefix}{last:0{VERSION_WIDTH}d}{_LAST}"


def vector_row_sk(model: str, last: int, part: int) -> str:
    """A row with vectors of the commits up to `last`."""
    return f"{vectors_sk(model)}#{last:0{VERSION_WIDTH}d}#{part:03d}"


def model_digest(model: str) -> str:
    """What stands for a model in keys."""
    return _digest(model)[:12]


def rows_of(letter: str) -> tuple[str, str]:
    """The first and last possible key of a space's rows of one letter: `D` -> all of its log."""
    return f"{letter}#", f"{letter}#{_LAST}"


def following(sk: str) -> str:
    """The smallest key after `sk`: where the next page of a query begins."""
    return sk + "\x01"


ALL_ROWS: Final = ("!", _LAST)  # first and last possible sort key of a partition


# --- objects


def space_prefix(space_id: str) -> str:
    """What every object key of a space begins with."""
    return f"{space_id}/"


def body_key(space_id: str, collection: str, least: int, suffix: str) -> str:
    """The object of a conversation's body that is too large for its row; the row names it.

    least: the conversation's id is this or, if others came in between, a later one.
    """
    return f"{space_id}/c/{collection}-{least:0{NUMBER_WIDTH}d}-{suffix}"


def body_prefix(space_id: str) -> str:
    """What the keys of all conversations' bodies of a space begin with."""
    return f"{space_id}/c/"


def body_place(space_id: str, key: str) -> tuple[str, int] | None:
    """The collection and the least id in the key of a body, or None for another object."""
    collection, _, rest = key.removeprefix(body_prefix(space_id)).partition("-")
    digits = rest[:NUMBER_WIDTH]
    proper = key.startswith(body_prefix(space_id)) and digits.isdecimal() and rest[NUMBER_WIDTH:][:1] == "-"
    return (collection, int(digits)) if proper else None


def delta_key(space_id: str, ver: int, suffix: str) -> str:
    """The object of a delta that is too large for its row."""
    return f"{space_id}/d/{ver:0{VERSION_WIDTH}d}-{suffix}"


def delta_key_version(space_id: str, key: str) -> int | None:
    """The log version in the key of a delta's object, or None for another object."""
    name = key.removeprefix(f"{space_id}/d/")
    digits = name[:VERSION_WIDTH]
    return int(digits) if name != key and digits.isdecimal() else None


def segment_key(space_id: str, digest: str, suffix: str) -> str:
    """The object of a segment; the digest of its bytes is in the name for whoever looks by hand."""
    return f"{space_id}/seg/{digest[:24]}-{suffix}"


def vector_key(segment: str, model: str) -> str:
    """The object of a segment's vectors of one model, beside the segment's own."""
    return f"{segment}{_VECTORS}{model_digest(model)}"


def vector_part_key(segment: str, model: str, suffix: str) -> str:
    """The object of some of a segment's vectors, kept until all of them are there."""
    return f"{vector_key(segment, model)}-{suffix}"


def vector_model(key: str) -> str:
    """The model's digest in the key of a segment's vectors."""
    return key.rpartition(_VECTORS)[2].partition("-")[0]


def segment_prefix(space_id: str) -> str:
    """What the keys of all segments of a space, and of their vectors, begin with."""
    return f"{space_id}/seg/"


def vector_segment(key: str) -> str | None:
    """The key of the segment that vectors are of, or None for another object."""
    segment, found, _ = key.rpartition(_VECTORS)
    return segment if found else None


def filter_key(space_id: str, ver: int, suffix: str) -> str:
    """The object of the key filter that belongs to a manifest."""
    return f"{space_id}/f/{ver:0{VERSION_WIDTH}d}-{suffix}"


def manifest_key(space_id: str, ver: int, suffix: str) -> str:
    """The object of the manifest that holds the state at `ver`."""
    return f"{space_id}/m/{ver:0{VERSION_WIDTH}d}-{suffix}"
