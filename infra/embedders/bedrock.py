"""Embeddings by Amazon Bedrock's InvokeModel: Titan Text Embeddings V2, and Cohere's.

What lives here: each model's request and reply. What must never live here: retries. Titan takes one text a call, so
several calls are made at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import msgspec

from core.model.instants import Instant
from core.models.chat import ModelFault
from core.models.embedder import COHERE
from core.ports import Clock, EmbedKind
from infra.embedders.patience import Repeater, Rows, batches, rows_of
from infra.models.bedrock_faults import bedrock_faults

if TYPE_CHECKING:
    from infra.aws.clients import Clients

CALLS_AT_ONCE: Final = 8
COHERE_AT_ONCE: Final = 96
COHERE_CHARS: Final = 2048  # of a text, by its documentation


class BedrockEmbedder:
    """Safe to share between threads.

    Args:
        model: a model's or an inference profile's id.
        dimension: numbers in each vector.
        clients: AWS.
        clock: the time.
        repeater: repeats; botocore repeats nothing here.
    """

    local: Final = False

    def __init__(
        self, model: str, dimension: int, clients: Clients, clock: Clock, repeater: Repeater
    ) -> None:
        self._id = model
        self._clients = clients
        self._clock = clock
        self._repeater = repeater
        self._cohere = COHERE in model
        self.dimension = dimension
        self.model = f"bedrock:{model}:{dimension}"

    def embed(self, texts: Sequence[str], kind: EmbedKind, deadline: Instant) -> Rows:
        """One vector for each text. Raises `EmbedderFault`."""
        if self._cohere:
            wanted = "search_query" if kind == "query" else "search_document"
            cut = batches([text[:COHERE_CHARS] or " " for text in texts], COHERE_AT_ONCE, 1 << 30)
            asked = {"input_type": wanted, "truncate": "END"}
            return self._repeater.each(
                deadline, cut, lambda batch: self._ask({"texts": batch, **asked}, len(batch), deadline)
            )
        requests = [
            {"inputText": text or " ", "dimensions": self.dimension, "normalize": True} for text in texts
        ]
        if len(requests) < 2:
            return [row for request in requests for row in self._rows(request, 1, deadline)]
        with ThreadPoolExecutor(min(CALLS_AT_ONCE, len(requests))) as pool:
            found = pool.map(lambda request: self._rows(request, 1, deadline), requests)
            return [row for rows in found for row in rows]

    def _rows(self, request: dict[str, Any], count: int, deadline: Instant) -> Rows:
        return self._repeater.rows(deadline, lambda: self._ask(request, count, deadline))

    def _ask(self, request: dict[str, Any], count: int, deadline: Instant) -> Rows:
        reply = self._invoke(msgspec.json.encode(request), deadline)
        found = reply.get("embeddings" if self._cohere else "embedding") if isinstance(reply, dict) else None
        if isinstance(found, dict):  # Cohere's, by type
            found = found.get("float")
        return rows_of(found if self._cohere else [found], count)

    def _invoke(self, body: bytes, deadline: Instant) -> Any:  # JSON
        left = max(0.05, (deadline - self._clock.now()) / 1000)
        with bedrock_faults(self._clock):
            answer = self._clients.bedrock(left).invoke_model(
                modelId=self._id, body=body, accept="application/json", contentType="application/json"
            )
            text = answer["body"].read()
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise ModelFault("bad_reply", "the reply is no JSON") from error
