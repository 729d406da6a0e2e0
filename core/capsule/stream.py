"""A large Capsule as lines: one artifact, written and read piece by piece in bounded memory (KIP §41.1, design §236).

What lives here: the transport `noema-capsule-lines-1`. What must never live here: another artifact. The lines carry
exactly the payload of a Capsule: its digest is the same as that of the whole written as one JSON value, so cutting a
Capsule into lines changes neither its identity nor its signatures.

    {"format", "version", "transport": "noema-capsule-lines-1", "payload": <all but the records>}
    {"activities": <record>} ... {"assertions": <record>} ...     in the order of a canonical payload
    {"integrity": <digest and proofs>}

Refs are dense and in order, `c:1`, `c:2`, ..., so that a reader knows by counting where each of them is, and needs no
table of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from core.capsule.export import Exporter
from core.capsule.format import (
    FORMAT,
    PLURAL,
    RECORD_OF,
    VERSION,
    AnyRecord,
    Artifact,
    Integrity,
    Payload,
)
from core.capsule.read import MAX_DEPTH, check_blob, check_content, check_object, pointers, read_shape
from core.errors import NoemaError
from core.model.ids import Kind
from core.protocol.canonical import PROFILE, canonical_json
from core.protocol.request import decode_json
from core.state.view import View

TRANSPORT: Final = "noema-capsule-lines-1"
MAX_LINE: Final = 8 * 1024 * 1024
LETTERS: Final[dict[Kind, str]] = {
    "activity": "v",
    "assertion": "a",
    "concept": "c",
    "evidence": "e",
    "proposition": "p",
}
_KIND_OF: Final = {plural: kind for kind, plural in PLURAL.items()}
_BEFORE: Final = "records"


class PayloadDigest:
    """The digest of a canonical payload whose records come one by one."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        self._hash = hashlib.sha256(b"{")
        self._first = True
        self._after = sorted(name for name in header if name > _BEFORE)
        self._header = header
        for name in sorted(name for name in header if name < _BEFORE):
            self._member(name)
        self._list: str | None = None

    def _comma(self) -> bytes:
        text = b"" if self._first else b","
        self._first = False
        return text

    def _member(self, name: str) -> None:
        self._hash.update(self._comma() + canonical_json(name) + b":" + canonical_json(self._header[name]))

    def add(self, plural: str, body: bytes) -> None:
        """One record in its canonical form; kinds come in order."""
        if plural == self._list:
            self._hash.update(b"," + body)
            return
        opening = self._comma() + b'"records":{' if self._list is None else b"],"
        self._hash.update(opening + canonical_json(plural) + b":[" + body)
        self._list = plural

    def finish(self) -> str:
        """The digest."""
        if self._list is None:
            self._hash.update(self._comma() + b'"records":{}')
        else:
            self._hash.update(b"]}")
        for name in self._after:
            self._member(name)
        self._hash.update(b"}")
        return f"sha256:{self._hash.hexdigest()}"


# --- writing


def name_everything(exporter: Exporter, view: View) -> dict[Kind, int]:
    """Give every element that may be exported its ref, and every reference out of them its ExternalRef.

    Returns:
        How many there are of each kind.
    """
    counts: dict[Kind, int] = {}
    for kind in PLURAL:
        ids = [found for found in view.ids(kind) if exporter.verdict(found) == "include"]
        exporter.name(ids)
        counts[kind] = len(ids)
    return counts


def write_lines(payload: Payload, records: Iterable[AnyRecord]) -> Generator[bytes, None, str]:
    """The lines of a Capsule but for the last, and the digest as what the generator returns.

    Args:
        payload: without records; its manifest counts them.
        records: in canonical order: activities, assertions, concepts, evidence, propositions.
    """
    header = msgspec.to_builtins(payload)
    del header["records"]
    digest = PayloadDigest(header)
    yield _line({"format": FORMAT, "version": VERSION, "transport": TRANSPORT, "payload": header})
    names = {cls: PLURAL[kind] for kind, cls in RECORD_OF.items()}
    for record in records:
        body = canonical_json(msgspec.to_builtins(record))
        plural = names[type(record)]
        digest.add(plural, body)
        yield b'{"' + plural.encode() + b'":' + body + b"}\n"
    return digest.finish()


def last_line(digest: str, proofs: list[dict[str, Any]]) -> bytes:
    """The line that ends a Capsule: without it nothing before it counts."""
    return _line({"integrity": {"content_digest": digest, "digest_profile": PROFILE, "proofs": proofs}})


def _line(value: Any) -> bytes:  # a JSON value
    return canonical_json(value) + b"\n"


def lines_of(artifact: Mapping[str, Any]) -> Iterator[bytes]:
    """The lines of a Capsule that is one JSON value."""
    payload = dict(artifact["payload"])
    records = payload.pop("records", {})
    told = {name: value for name, value in artifact.items() if name not in {"payload", "integrity"}}
    yield _line({**told, "transport": TRANSPORT, "payload": payload})
    for plural in PLURAL.values():
        for record in records.get(plural, ()):
            yield _line({plural: record})
    yield _line({"integrity": artifact["integrity"]})


# --- reading


class Lines:
    """Reads the lines of a Capsule once, checking as it goes; nothing is to be believed before `finish`.

    Args:
        lines: bytes of each line, line ends included or not.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        first = _object(self._next())
        if first.get("transport") != TRANSPORT:
            raise NoemaError("ArtifactParseError", f"the first line is not of the transport {TRANSPORT}")
        stand_in = {"content_digest": "sha256:", "digest_profile": PROFILE, "proofs": []}
        self.header: dict[str, Any] = first["payload"] if isinstance(first.get("payload"), dict) else {}
        if "records" in self.header or "changes" in self.header:
            raise NoemaError("ArtifactParseError", "the header of a Capsule in lines has no records")
        whole = {"format": first.get("format"), "version": first.get("version"), "integrity": stand_in}
        self.artifact: Artifact = read_shape({**whole, "payload": {**self.header, "records": {}}})
        self.blobs = {blob.blob_ref: blob for blob in self.payload.blobs}
        for blob in self.payload.blobs:
            check_blob(blob)
        for number, external in enumerate(self.payload.external_refs, start=1):
            if external.external_ref != f"x:{number}":
                raise NoemaError("CapsuleValidationFailed", "the ExternalRefs are not in order")
        counts = self.payload.manifest.counts
        self.counts: dict[Kind, int] = {kind: counts.get(plural, 0) for kind, plural in PLURAL.items()}
        self._digest = PayloadDigest(self.header)
        self.integrity: Integrity | None = None

    @property
    def payload(self) -> Payload:
        """The payload without its records."""
        return self.artifact.payload

    def records(self) -> Iterator[tuple[Kind, AnyRecord]]:
        """Every record with its kind, in order; then the last line has been read and `finish` may be asked.

        Raises:
            NoemaError: ArtifactParseError, CapsuleValidationFailed with the number of the record.
        """
        seen: dict[Kind, int] = dict.fromkeys(PLURAL, 0)
        at, order = 0, list(PLURAL)
        for line in self._lines:
            if not line.strip():
                continue
            value = _object(line)
            if "integrity" in value:
                self._end(value, seen)
                return
            (plural, body), *rest = value.items()
            kind = _KIND_OF.get(plural)
            if rest or kind is None:
                raise NoemaError("ArtifactParseError", "a line holds one record of one kind")
            if order.index(kind) < at:
                raise NoemaError("CapsuleValidationFailed", "the kinds of records stand in canonical order")
            at = order.index(kind)
            seen[kind] += 1
            record = self._record(kind, body, seen[kind])
            self._digest.add(plural, canonical_json(body))
            yield kind, record
        raise NoemaError("ArtifactParseError", "the Capsule ends before its last line")

    def _record(self, kind: Kind, body: Any, number: int) -> AnyRecord:
        try:
            record: AnyRecord = msgspec.convert(body, RECORD_OF[kind], strict=True)  # type: ignore[assignment]
        except msgspec.ValidationError as error:
            raise NoemaError(
                "ArtifactParseError",
                f"the shape of {kind} {number} is wrong: {str(error)[:200]}",
                details={"kind": kind, "number": number},
            ) from error
        if record.ref != f"{LETTERS[kind]}:{number}":
            raise NoemaError(
                "CapsuleValidationFailed", f"the refs of {PLURAL[kind]} are not in order at {number}"
            )
        check_content(record, kind, self.blobs, delta=False)
        for name, pointer, kinds in pointers(record):
            self._check_pointer(f"{record.ref}.{name}", pointer.ref, pointer.external, kinds)
        return record

    def _check_pointer(self, at: str, ref: str | None, external: str | None, kinds: tuple[Kind, ...]) -> None:
        if (ref is None) == (external is None):
            raise NoemaError("CapsuleValidationFailed", f"{at}: a reference is a $ref or an $external")
        if ref is None:
            if int(str(external)[2:]) > len(self.payload.external_refs):
                raise NoemaError("CapsuleValidationFailed", f"{at}: there is no ExternalRef {external}")
            return
        kind = kind_of_ref(ref)
        if kind not in kinds or int(ref[2:]) > self.counts[kind]:
            raise NoemaError("CapsuleValidationFailed", f"{at}: there is no record {ref} that may stand here")

    def _end(self, value: dict[str, Any], seen: dict[Kind, int]) -> None:
        if seen != self.counts:
            raise NoemaError(
                "CapsuleValidationFailed",
                "the manifest counts other records than there are",
                details={"actual": seen},
            )
        if any(line.strip() for line in self._lines):
            raise NoemaError("ArtifactParseError", "something stands behind the last line")
        try:
            self.integrity = msgspec.convert(value["integrity"], Integrity, strict=True)
        except msgspec.ValidationError as error:
            raise NoemaError("ArtifactParseError", f"the last line is wrong: {str(error)[:200]}") from error

    def finish(self) -> str:
        """The digest of what was read, which must be the one the last line names.

        Raises:
            NoemaError: DigestMismatch, UnsupportedCapability for another digest profile.
        """
        assert self.integrity is not None, "the records are read first"
        if self.integrity.digest_profile != PROFILE:
            raise NoemaError("UnsupportedCapability", "the digest profile is not known here")
        actual = self._digest.finish()
        if actual != self.integrity.content_digest:
            raise NoemaError(
                "DigestMismatch",
                "the Capsule's content is not what its digest names",
                details={"expected": self.integrity.content_digest[:200], "actual": actual},
            )
        return actual

    def _next(self) -> bytes:
        for line in self._lines:
            return line
        raise NoemaError("ArtifactParseError", "the Capsule is empty")


def kind_of_ref(ref: str) -> Kind | None:
    """The kind that the letter of a ref of this transport means."""
    return next((kind for kind, letter in LETTERS.items() if ref[0] == letter), None)


def is_lines(start: bytes) -> bool:
    """Whether the first line of a file begins a Capsule in lines."""
    try:
        value = json.loads(start)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("transport") == TRANSPORT


def _object(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE:
        raise NoemaError("ArtifactTooLarge", f"a line has at most {MAX_LINE} bytes")
    try:
        value = decode_json(line, limit=MAX_LINE)
    except NoemaError as error:
        raise NoemaError(
            "ArtifactParseError", error.message.replace("the body", "the Capsule"), details=error.details
        ) from error
    found = check_object(value)
    if not found:
        raise NoemaError(
            "ArtifactParseError", f"a line is an object of at most {MAX_DEPTH} levels that is not empty"
        )
    return found
