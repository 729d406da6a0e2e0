"""Embeddings by an Ollama server (`POST <base>/api/embed`).

What lives here: the request, the reply, and what some models want before a text. What must never live here: retries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from core.model.instants import Instant
from core.models.chat import ModelFault
from core.models.embedder import family
from core.ports import EmbedKind
from infra.embedders.patience import Repeater, Rows, batches, rows_of
from infra.models.http import Http

BASE: Final = "http://127.0.0.1:11434"
_BEFORE: Final[dict[str, dict[EmbedKind, str]]] = {
    "nomic-embed-text": {"query": "search_query: ", "passage": "search_document: "},
    "mxbai-embed-large": {
        "query": "Represent this sentence for searching relevant passages: ",
        "passage": "",
    },
    "snowflake-arctic-embed": {
        "query": "Represent this sentence for searching relevant passages: ",
        "passage": "",
    },
}
AT_ONCE: Final = 64
CHARS_AT_ONCE: Final = 100_000


class OllamaEmbedder:
    """Safe to share between threads.

    Args:
        model: its name there, with or without a tag.
        dimension: numbers in each vector.
        base: the server's URL.
        http: sends.
        repeater: repeats.
    """

    local: Final = False

    def __init__(self, model: str, dimension: int, base: str, *, http: Http, repeater: Repeater) -> None:
        self._name = model
        self._url = f"{base.rstrip('/')}/api/embed"
        self._before = _BEFORE.get(family(model), {})
        self._http = http
        self._repeater = repeater
        self.dimension = dimension
        self.model = f"ollama:{model}:{dimension}"

    def embed(self, texts: Sequence[str], kind: EmbedKind, deadline: Instant) -> Rows:
        """One vector for each text. Raises `EmbedderFault`."""
        before = self._before.get(kind, "")
        cut = batches([before + text for text in texts], AT_ONCE, CHARS_AT_ONCE)
        return self._repeater.each(deadline, cut, lambda batch: self._ask(batch, deadline))

    def _ask(self, texts: Sequence[str], deadline: Instant) -> Rows:
        body = msgspec.json.encode({"model": self._name, "input": list(texts), "truncate": True})
        reply = self._http.ask(self._url, {"content-type": "application/json"}, body, deadline)
        if not isinstance(reply, dict):
            raise ModelFault("bad_reply", "the reply is no object")
        return rows_of(reply.get("embeddings"), len(texts))
