"""The frames of a streamed answer: lines of JSON, numbered, the last of which says how it ended (KIP §84).

What lives here: the shape of a frame and its bytes. What must never live here: what is streamed. A frame is a unit of
delivery and no cognitive event; only a `final` frame (or `error`) ends a stream, so that one without is broken.

    {"stream_id":"s","request_id":"r","frame_seq":0,"kind":"start","data":{...}}
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from core.errors import NoemaError

MEDIA_TYPE: Final = "application/x-ndjson"

FrameKind = Literal["start", "data", "warning", "progress", "final", "error"]
TERMINAL: Final[frozenset[FrameKind]] = frozenset({"final", "error"})


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a stream, bound to its request (KIP Runtime §209-212, §419)."""

    stream_id: str
    request_id: str | UnsetType = UNSET
    op_id: str | UnsetType = UNSET
    frame_seq: int
    kind: FrameKind
    data: Any


_ENCODER: Final = msgspec.json.Encoder()


class Framer:
    """Numbers the frames of one stream and writes them; it knows what has gone out.

    Args:
        stream_id: names the stream.
        request_id, op_id: of the request and its operation, where the client named them.
    """

    def __init__(
        self, stream_id: str, request_id: str | UnsetType = UNSET, op_id: str | UnsetType = UNSET
    ) -> None:
        self._names = (stream_id, request_id, op_id)
        self._digest = hashlib.sha256()
        self.frames = 0
        self.rows = 0
        self.cursor: str | None = None
        """Where the rest begins, after the last page that went out whole."""
        self.ended = False

    def line(self, kind: FrameKind, data: Any) -> bytes:  # any value msgspec can encode
        """The next frame as a line."""
        stream_id, request_id, op_id = self._names
        frame = Frame(
            stream_id=stream_id,
            request_id=request_id,
            op_id=op_id,
            frame_seq=self.frames,
            kind=kind,
            data=data,
        )
        self.frames += 1
        self.ended = kind in TERMINAL
        encoded = _ENCODER.encode(frame) + b"\n"
        if kind == "data":
            self._digest.update(encoded)
        return encoded

    @property
    def digest(self) -> str:
        """Of the data lines so far, each with its line feed."""
        return f"sha256:{self._digest.hexdigest()}"

    def error(self, error: NoemaError) -> bytes:
        """The frame that ends a stream which could not go on: why, how far it came, and where the rest begins."""
        return self.line("error", {"outcome": "error", "error": error.to_wire(), **self.sent})

    @property
    def sent(self) -> dict[str, Any]:
        """What a terminal frame says of the frames before it."""
        resume = {} if self.cursor is None else {"next_cursor": self.cursor}
        return {"rows": self.rows, "frames": self.frames, "digest": self.digest, **resume}
