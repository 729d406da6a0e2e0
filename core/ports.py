"""What the world must give us, as tiny protocols in the product's words. `infra` implements them.

What lives here: signatures, the values that cross them, and the faults they may raise. What must never live
here: behaviour. Adapters move bytes; `core.storage` and `core.service` give them meaning. Everything is
synchronous: one Lambda serves one request, and parallelism is the platform's.

The store is two ports, after what DynamoDB and S3 can promise:

* `Table`: small rows in partitions, strongly consistent reads, and `transact`, which applies several
  conditional writes together or none of them. It is the only commit point in the product.
* `Objects`: immutable byte strings. A key is written once and never again, so nothing read can be stale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from core.model.instants import Instant
from core.model.proofs import Signature, Verdict

Value = str | int | bytes | bool | None
Range = tuple[str, int, int]  # of an object: its key, the first byte, how many
Row = dict[str, Value]  # attribute -> value, without the keys; a None value is never stored

MAX_WRITES = 100  # of one transaction: DynamoDB's bound, kept by every store
MAX_TRANSACTION_BYTES = 4_000_000
MAX_ROW_BYTES = 390_000  # DynamoDB's 400 KB with room for names and keys


class When(msgspec.Struct, frozen=True):
    """A condition on the row as it stands; every part must hold.

    absent: no such row. present: the row exists. equals: these attributes have these values (None: the
    attribute is missing). below: these attributes are missing or less than the number.
    """

    absent: bool = False
    present: bool = False
    equals: dict[str, Value] = {}
    below: dict[str, int] = {}


class Put(msgspec.Struct, frozen=True, tag="put"):
    """Write a whole row, replacing what stands there."""

    pk: str
    sk: str
    row: Row
    when: When | None = None


class Update(msgspec.Struct, frozen=True, tag="update"):
    """Change some attributes of a row: `assign` sets (None removes), `add` adds to numbers (missing = 0)."""

    pk: str
    sk: str
    assign: Row = {}
    add: dict[str, int] = {}
    when: When | None = None


class Delete(msgspec.Struct, frozen=True, tag="delete"):
    """Remove a row; removing an absent row is no error unless `when` says so."""

    pk: str
    sk: str
    when: When | None = None


class Check(msgspec.Struct, frozen=True, tag="check"):
    """Write nothing, but let the transaction stand only if the condition holds."""

    pk: str
    sk: str
    when: When


Write = Put | Update | Delete | Check


class StoreFault(Exception):  # noqa: N818 - a fault of the world, told from an error of a caller
    """The root of what a store may raise; never shown to a caller as it is."""


class Refused(StoreFault):
    """A condition did not hold; nothing was written.

    `failed` maps the index of each write whose condition failed to the row as it stands now (None: absent).
    An empty map means the store only knows that transactions collided: try again.
    """

    def __init__(self, failed: Mapping[int, Row | None]) -> None:
        self.failed = dict(failed)
        super().__init__(
            f"writes {sorted(self.failed)} were refused" if self.failed else "transactions collided"
        )


class Unavailable(StoreFault):
    """The store did not answer in time or is throttling. For a write the outcome is **unknown**."""


class TooLarge(StoreFault):
    """The write is over a bound of the store (row, item count or bytes); nothing was written."""


class KeyExists(StoreFault):
    """An object of that key exists; keys are written once."""


class Table(Protocol):
    """Rows in partitions. Every read is strongly consistent; every method may raise `Unavailable`."""

    def get(self, pk: str, sk: str) -> Row | None:
        """The row as it stands, or None."""

    def query(
        self, pk: str, first: str, last: str, *, limit: int, reverse: bool = False
    ) -> list[tuple[str, Row]]:
        """Rows with `first <= sk <= last` in key order (descending if `reverse`), at most `limit` of them.

        A shorter answer than `limit` means there are no more.
        """

    def transact(self, writes: Sequence[Write]) -> None:
        """Apply all the writes or none. Raises `Refused`, `TooLarge` or `Unavailable`.

        At most one write may touch a row. An `Unavailable` leaves the outcome unknown: the caller must look.
        """


class Objects(Protocol):
    """Immutable objects under keys. Every method may raise `Unavailable`."""

    def put(self, key: str, body: bytes) -> None:
        """Write a new object. Raises `KeyExists` if the key was ever written and not deleted."""

    def get(self, key: str, first: int = 0, length: int | None = None) -> bytes | None:
        """The object's bytes from `first`, `length` of them or to the end; None if there is none."""

    def get_many(self, ranges: Sequence[Range]) -> Sequence[bytes | None]:
        """Several pieces of objects, each as `get` gives it, in the order asked; read at the same time or not."""

    def list(self, prefix: str) -> Iterator[tuple[str, Instant, int]]:
        """Every key below `prefix` in order, with the time it was written (ms) and its size in bytes."""

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; an absent key is no error."""


class Queue(Protocol):
    """Hints that there is work. The truth is always a row; a lost or repeated message must do no harm."""

    def send(self, group: str, body: str, *, dedupe: str) -> None:
        """Hand over one message; messages of one `group` are delivered one at a time, in order."""


class Cipher(Protocol):
    """Seals what must never be readable where it is stored. Any method may raise `Unavailable`."""

    def seal(self, plain: bytes, context: str) -> bytes:
        """The bytes, sealed; they open only under the same context."""

    def open(self, sealed: bytes, context: str) -> bytes:
        """What was sealed.

        Raises:
            StoreFault: it does not open: another key, another context, or other bytes than were sealed.
        """


class Secrets(Protocol):
    """Secrets by name, kept by somebody else. May raise `Unavailable`."""

    def get(self, name: str) -> str:
        """The secret's text.

        Raises:
            StoreFault: there is no such secret, or no right to read it.
        """


class Clock(Protocol):
    """Time, as an argument."""

    def now(self) -> Instant:
        """Unix milliseconds now."""

    def sleep(self, seconds: float) -> None:
        """Wait; only the commit loop's back-off and workers may."""


class Entropy(Protocol):
    """Chance, as an argument."""

    def token(self, count: int) -> bytes:
        """`count` unpredictable bytes."""

    def uniform(self, low: float, high: float) -> float:
        """A number between `low` and `high`, for jitter."""


EmbedKind = Literal["query", "passage"]


class EmbedderFault(Exception):  # noqa: N818 - a fault of the world, told from an error of a caller
    """The root of what an embedder may raise; never shown to a caller as it is. It never quotes a text."""


class EmbedderUnavailable(EmbedderFault):
    """The embedder did not answer in time, or is throttling. It may answer later."""


class EmbedderRefused(EmbedderFault):
    """The embedder will not do this: a key it does not take, a model it does not have. Waiting does not help."""


class EmbedderGarbled(EmbedderFault):
    """The embedder answered with something else than was asked: another count or dimension, or no numbers."""


class Embedder(Protocol):
    """Texts as vectors, so that what means much the same lies close together."""

    @property
    def model(self) -> str:
        """What names the vectors: those of another model are another index, never compared with these."""

    @property
    def dimension(self) -> int:
        """Numbers in each vector."""

    @property
    def local(self) -> bool:
        """Whether embedding is so cheap that a query may embed what nobody has embedded yet."""

    def embed(self, texts: Sequence[str], kind: EmbedKind, deadline: Instant) -> Sequence[Sequence[float]]:
        """One vector for each text, in order, of any length; all zeros for a text without anything to go by.

        Args:
            texts: any number of them; the adapter cuts them into what its service takes at once.
            kind: some models embed what is asked and what is told differently.
            deadline: when to give up (ms).

        Raises:
            EmbedderFault: `EmbedderUnavailable`, `EmbedderRefused` or `EmbedderGarbled`.
        """


class Signer(Protocol):
    """The deployment's own key, which never leaves it. The same bytes have the same signature."""

    def sign(self, payload: bytes) -> Signature:
        """A signature over exactly these bytes."""


class Verifier(Protocol):
    """Checks signatures of any key, and knows the names of some keys."""

    def check(self, key_id: str, payload: bytes, value: bytes) -> Verdict:
        """Whether the holder of the key signed exactly these bytes; never raises for bad input."""
