"""Embeddings by the OpenAI wire (`POST <base>/embeddings`), which many services and servers speak.

What lives here: the request and the reply. What must never live here: retries (`patience`), and the key in a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from core.model.instants import Instant
from core.models.chat import ModelFault
from core.models.choice import Key
from core.models.embedder import OPENAI_SHORTENED
from core.ports import EmbedKind
from infra.embedders.patience import Repeater, Rows, batches, rows_of
from infra.models.http import Http

BASE: Final = "https://api.openai.com/v1"
AT_ONCE: Final = 128  # texts of one request: the reply stays below a few megabytes
CHARS_AT_ONCE: Final = 200_000  # about 50,000 tokens


class OpenAiEmbedder:
    """Safe to share between threads.

    Args:
        model: its name there.
        dimension: numbers in each vector.
        key: gives what is sent as a bearer token; None for a server that wants none.
        base: the URL before `/embeddings`.
        http: sends.
        repeater: repeats.
    """

    local: Final = False

    def __init__(
        self, model: str, dimension: int, key: Key, base: str, *, http: Http, repeater: Repeater
    ) -> None:
        self._name = model
        self._url = f"{base.rstrip('/')}/embeddings"
        self._key = key
        self._http = http
        self._repeater = repeater
        self.dimension = dimension
        self.model = f"openai:{model}:{dimension}"

    def embed(self, texts: Sequence[str], kind: EmbedKind, deadline: Instant) -> Rows:
        """One vector for each text. Raises `EmbedderFault`."""
        del kind
        cut = batches(texts, AT_ONCE, CHARS_AT_ONCE)
        return self._repeater.each(deadline, cut, lambda batch: self._ask(batch, deadline))

    def _ask(self, texts: Sequence[str], deadline: Instant) -> Rows:
        # An empty text is refused by some; a space says as little.
        request: dict[str, Any] = {
            "model": self._name,
            "input": [text or " " for text in texts],
            "encoding_format": "float",
        }
        if self._name in OPENAI_SHORTENED:
            request["dimensions"] = self.dimension
        key = self._key()
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        reply = self._http.ask(self._url, headers, msgspec.json.encode(request), deadline)
        data = reply.get("data") if isinstance(reply, dict) else None
        if not isinstance(data, list) or not all(isinstance(one, dict) for one in data):
            raise ModelFault("bad_reply", "the reply has no list of vectors")
        places = [one.get("index", place) for place, one in enumerate(data)]
        if sorted(map(str, places)) != sorted(map(str, range(len(texts)))):
            raise ModelFault("bad_reply", "the reply does not have a vector for each text")
        found: list[Any] = [None] * len(texts)
        for place, one in zip(places, data, strict=True):
            found[place] = one.get("embedding")
        return rows_of(found, len(texts))
