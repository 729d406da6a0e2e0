"""`Memory`: the fact memory as a Python library, over a directory on this machine or a service elsewhere.

    from functions.library import Memory

    with Memory("./memory") as memory:                      # or Memory("https://...", space="demo", token="ST...")
        memory.remember("ann", "Deploys run on Friday.")
        memory.recall("ann", "when do we deploy?")          # ["Deploys run on Friday."]

What lives here: the methods, and the two ways a request goes. What must never live here: what a fact is. Both ways
take the same requests to the same routes (`functions.facts`), so both mean the same; a directory needs no server.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self
from urllib.parse import quote

import msgspec

from core.errors import REGISTRY, NoemaError
from core.facts.values import SHARED, ImportReport
from core.facts.wire import CheckpointView, FactView, ReceiptView, StatsView
from core.model.elements import Json
from functions.fact_types import BatchRecallOutput, ConsolidatedOutput, FactRecallOutput
from functions.plain import encode_json

__all__ = ["SHARED", "FactView", "Memory", "ReceiptView"]

_TIMEOUT_S: Final = 60.0
_TRIES: Final = 3  # of a request that is done once however often it is sent


class Transport(Protocol):
    """How a request gets to the service."""

    def send(
        self, method: str, path: str, body: Any, query: Mapping[str, str], key: str | None
    ) -> Any:  # JSON
        """The `result` of a route below `/v1/<space>`. Raises `NoemaError`."""

    def close(self) -> None:
        """Let go of what is open."""


class Memory:
    """Facts of agents, to remember and to recall.

    Every method may raise `NoemaError`, whose `code`, `message` and `hint` say what was wrong and what to do:
    `InvalidInput`, `PayloadTooLarge`, `NotFoundOrNotVisible`, `NotAuthorized`, `ServiceUnavailable` and so on.
    After `close` every method raises `ValueError`.

    Args:
        where: a directory, made if it is not there; or the URL of a service.
        space: the space's id. In a directory it is made if it is not there.
        token: the credential of a service.
        embedder: what ranks by meaning in a directory, as NOEMA_EMBEDDER names it; `none` for words and age alone,
            None for the static one where its weights are installed. A service has its own.
        transport: another way for requests; `where` and `token` are then not used.
    """

    def __init__(
        self,
        where: str | Path,
        *,
        space: str = "memory",
        token: str | None = None,
        embedder: str | None = None,
        transport: Transport | None = None,
    ) -> None:
        if transport is None:
            remote = isinstance(where, str) and where.startswith(("http://", "https://"))
            transport = Remote(str(where), space, token) if remote else local(Path(where), space, embedder)
        self._transport: Transport | None = transport

    # --- writing

    def remember(
        self,
        agent_id: str,
        text: str,
        *,
        confidence: str | None = None,
        again: bool = False,
        key: str | None = None,
    ) -> FactView:
        """Keep a text verbatim as a new fact; the exact fact committed.

        A text that this memory served within the last day and that still stands is no news: the fact that it is
        comes back, and nothing is written.

        Args:
            agent_id: whose; a namespace, byte for byte.
            text: at most 200,000 bytes.
            confidence: verified, inferred or unverified; None stores no label, which counts as inferred.
            again: somebody said it anew, so it is kept also if it was served lately.
            key: the same key again is the same fact; one is drawn if none is given, so a lost answer is
                asked for again and nothing is kept twice.
        """
        body = {"agent_id": agent_id, "text": text, **_given(confidence=confidence, again=again or None)}
        return self._post("/facts", body, FactView, key=key)

    def remember_shared(
        self, text: str, *, confidence: str | None = None, key: str | None = None
    ) -> FactView:
        """Keep a fact for all agents of the space."""
        return self.remember(SHARED, text, confidence=confidence, key=key)

    def remember_extracted(self, agent_id: str, answer: str) -> list[FactView]:
        """Keep up to five facts as unverified: a model's JSON array, or what the space's model takes from a text.

        Without a model, any other text is kept whole as one fact.
        """
        return self._post("/facts/extract", {"agent_id": agent_id, "answer": answer}, list[FactView])

    def revise(self, agent_id: str, target: str, text: str, *, confidence: str | None = None) -> FactView:
        """Replace every live fact whose text is exactly `target`; the replacement."""
        body = {"agent_id": agent_id, "target": target, "text": text, **_given(confidence=confidence)}
        return self._post("/facts/revise", body, _Replaced).fact

    def forget(self, agent_id: str, target: str) -> tuple[str, ...]:
        """Retire every live fact of exactly this text; their ids."""
        return self._change("forget", agent_id, target)

    def pin(self, agent_id: str, target: str) -> tuple[str, ...]:
        """Keep every live fact of exactly this text from decay; their ids."""
        return self._change("pin", agent_id, target)

    def unpin(self, agent_id: str, target: str) -> tuple[str, ...]:
        """Let every fact of exactly this text decay again; their ids."""
        return self._change("unpin", agent_id, target)

    def delete(self, agent_id: str, fact_id: str) -> bool:
        """Erase one fact physically, from the present and from all history; False if there is none."""
        query = {"agent_id": agent_id}
        return bool(self._send("DELETE", f"/facts/{quote(fact_id, safe='')}", None, query))

    def alias(self, agent_id: str, term: str, equivalents: Sequence[str]) -> FactView:
        """Teach the agent's namespace that words mean the same to a query."""
        body = {"agent_id": agent_id, "term": term, "equivalents": list(equivalents)}
        return self._post("/facts/alias", body, FactView)

    def link(self, agent_id: str, source: str, target: str) -> str:
        """Link two things by name in the knowledge graph; the Proposition's id."""
        body = {"agent_id": agent_id, "source": source, "target": target}
        return str(self._send("POST", "/facts/link", body)["proposition"])

    def consolidate(self, agent_id: str) -> ConsolidatedOutput:
        """Let weights fade and prune what has faded; nothing happens while another one runs."""
        return self._post("/facts/consolidate", {"agent_id": agent_id}, ConsolidatedOutput, keyed=False)

    # --- reading

    def recall(
        self,
        agent_id: str,
        query: str,
        *,
        top_k: int | None = None,
        min_confidence: str | None = None,
        confidence_weight: float | None = None,
    ) -> list[str]:
        """The agent's texts that fit best, best first."""
        options = _given(top_k=top_k, min_confidence=min_confidence, confidence_weight=confidence_weight)
        return list(self.recall_with_options(agent_id, query, **options).facts)

    def recall_shared(self, query: str, **options: Any) -> list[str]:  # as `recall`
        """The shared texts that fit best."""
        return self.recall(SHARED, query, **options)

    def recall_all(self, agent_id: str, query: str, **options: Any) -> list[str]:  # as `recall`
        """The agent's texts and the shared ones, merged by rank."""
        return list(self.recall_with_options(agent_id, query, scope="all", **_given(**options)).facts)

    def explain(self, agent_id: str, query: str, **options: Any) -> list[ReceiptView]:  # as `recall`
        """The same ranking with a receipt for each fact: ranks, scores, provenance."""
        found = self.recall_with_options(agent_id, query, explain=True, **_given(**options))
        return list(found.explained or ())

    def recall_with_options(self, agent_id: str, query: str, **options: Any) -> FactRecallOutput:
        """The whole answer of a recall: texts or receipts, policy, words about a weak match, hints.

        Args:
            agent_id: whose.
            query: what for.
            options: top_k, min_confidence, confidence_weight, explain, hints, scope (agent, shared, all).
        """
        body = {"agent_id": agent_id, "query": query, **options}
        return self._post("/facts/recall", body, FactRecallOutput, keyed=False)

    def recall_batch(self, agent_id: str, queries: Sequence[str], **options: Any) -> BatchRecallOutput:
        """Several queries under one policy, and their merged view; options as `recall`."""
        body = {"agent_id": agent_id, "queries": list(queries), **_given(**options)}
        return self._post("/facts/recall_batch", body, BatchRecallOutput, keyed=False)

    def facts(self, agent_id: str, *, limit: int = 50, retired: bool = False) -> list[FactView]:
        """The agent's facts, newest first."""
        query = {"agent_id": agent_id, "limit": str(limit), "retired": str(retired).lower()}
        return msgspec.convert(self._send("GET", "/facts", None, query), list[FactView])

    def agents(self) -> list[str]:
        """The agents that have facts."""
        return list(self._send("GET", "/facts/agents", None))

    def stats(self, agent_id: str) -> StatsView:
        """What the agent's namespace holds."""
        return msgspec.convert(self._send("GET", "/facts/stats", None, {"agent_id": agent_id}), StatsView)

    # --- checkpoints

    def save_checkpoint(
        self,
        agent_id: str,
        state: Mapping[str, Json] | None = None,
        *,
        messages: Sequence[Mapping[str, Json]] = (),
        metadata: Mapping[str, str] | None = None,
    ) -> CheckpointView:
        """Save a session's state."""
        body = {
            "agent_id": agent_id,
            "state": None if state is None else dict(state),
            "messages": [dict(each) for each in messages],
            "metadata": dict(metadata or {}),
        }
        return self._post("/facts/checkpoints", body, CheckpointView)

    def checkpoints(self, agent_id: str, *, limit: int = 50) -> list[CheckpointView]:
        """An agent's checkpoints, the latest first."""
        query = {"agent_id": agent_id, "limit": str(limit)}
        return msgspec.convert(self._send("GET", "/facts/checkpoints", None, query), list[CheckpointView])

    def checkpoint(self, agent_id: str, checkpoint_id: str) -> CheckpointView:
        """One checkpoint by its id; `NotFoundOrNotVisible` if there is none."""
        path = f"/facts/checkpoints/{quote(checkpoint_id, safe='')}"
        return msgspec.convert(self._send("GET", path, None, {"agent_id": agent_id}), CheckpointView)

    def delete_checkpoint(self, agent_id: str, checkpoint_id: str) -> bool:
        """Erase one checkpoint physically; False if there is none."""
        path = f"/facts/checkpoints/{quote(checkpoint_id, safe='')}"
        return bool(self._send("DELETE", path, None, {"agent_id": agent_id}))

    def latest_checkpoint(self, agent_id: str) -> CheckpointView | None:
        """The checkpoint saved last; None if there is none."""
        query = {"agent_id": agent_id, "limit": "1"}
        found = msgspec.convert(self._send("GET", "/facts/checkpoints", None, query), list[CheckpointView])
        return found[0] if found else None

    # --- files

    def export(self, form: str = "json", *, agent_id: str | None = None) -> dict[str, str]:
        """Files by name: `json` (imports back without loss), `markdown` or `obsidian`; of all agents or one."""
        query = {"format": form, **_given(agent_id=agent_id)}
        files: dict[str, str] = self._send("GET", "/facts/export", None, query)["files"]
        return files

    def import_file(self, text: str, form: str = "noema", *, agent_id: str | None = None) -> ImportReport:
        """Keep the facts of a file's text; `form`: noema, graymatter, mem0, mcp-memory."""
        body = {"format": form, "data": text, **_given(agent_id=agent_id)}
        return self._post("/facts/import", body, ImportReport, keyed=False)

    # --- the rest

    def close(self) -> None:
        """Let go of what is open; closing again does nothing."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def _change(self, what: str, agent_id: str, target: str) -> tuple[str, ...]:
        body = {"agent_id": agent_id, "target": target}
        return tuple(self._send("POST", f"/facts/{what}", body)["ids"])

    def _post[T](
        self, path: str, body: Any, kind: type[T], *, key: str | None = None, keyed: bool = True
    ) -> T:
        """A request and its answer as a value; a `keyed` one is done once however often it is sent."""
        drawn = key or (secrets.token_hex(16) if keyed else None)
        return msgspec.convert(self._send("POST", path, body, key=drawn), kind)

    def _send(
        self,
        method: str,
        path: str,
        body: Any,
        query: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Any:  # JSON
        if self._transport is None:
            raise ValueError("this memory is closed")
        return self._transport.send(method, path, body, query or {}, key)


class _Replaced(msgspec.Struct, frozen=True):
    """What a revision answers."""

    fact: FactView


def _given(**members: Any) -> dict[str, Any]:
    """What is not None: an option left out is told from one that is given."""
    return {name: value for name, value in members.items() if value is not None}


class Remote:
    """Requests to a service over HTTP.

    Args:
        url: its root.
        space: the space's id.
        token: a credential, or None.
        client: an `httpx.Client` to use; one is made if none is given.
    """

    def __init__(self, url: str, space: str, token: str | None, *, client: Any = None) -> None:
        import httpx  # noqa: PLC0415 - a memory in a directory needs no HTTP

        self._failed = httpx.TransportError
        self._base = f"{url.rstrip('/')}/v1/{quote(space, safe='')}"
        self._headers = {"accept": "application/json"} | (
            {"authorization": f"Bearer {token}"} if token else {}
        )
        self._http = client or httpx.Client(timeout=_TIMEOUT_S)

    def send(
        self, method: str, path: str, body: Any, query: Mapping[str, str], key: str | None
    ) -> Any:  # JSON
        """The `result` of a route; a request with a key, and one that reads, is sent again if no answer came."""
        headers = self._headers | ({"idempotency-key": key} if key else {})
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = encode_json(body)
        tries = _TRIES if key or method == "GET" else 1
        for left in range(tries - 1, -1, -1):
            try:
                answer = self._http.request(
                    method, self._base + path, content=content, params=dict(query), headers=headers
                )
                break
            except self._failed as error:
                if left == 0:
                    raise _no_answer(method, path, error) from error
        return _result(answer.status_code, answer.content)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def _no_answer(method: str, path: str, error: Exception) -> NoemaError:
    reads = method == "GET" or path.startswith("/facts/recall")
    code = "ServiceUnavailable" if reads else "OutcomeUnknown"
    return NoemaError(code, f"the service did not answer: {type(error).__name__}")


def _result(status: int, content: bytes) -> Any:  # JSON
    """The `result` of an answer, or the error it tells."""
    try:
        answer = msgspec.json.decode(content)
    except msgspec.MsgspecError as error:
        raise NoemaError("ServiceUnavailable", f"the answer ({status}) is not a Noema service's") from error
    if status == 200 and isinstance(answer, dict) and "result" in answer:
        return answer["result"]
    told = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(told, dict):
        raise NoemaError("ServiceUnavailable", f"the answer ({status}) is not a Noema service's")
    data = told.get("data") or {}
    code = data.get("code")
    raise NoemaError(
        code if code in REGISTRY else "InternalError",
        str(told.get("message", f"status {status}")),
        hint=data.get("hint"),
        details=data.get("details"),
    )


def local(directory: Path, space: str, embedder: str | None = None) -> Transport:
    """Requests to a memory in a directory of this machine, answered in this process."""
    from functions.local.library import open_directory  # noqa: PLC0415 - a remote memory needs no store

    return open_directory(directory, space, embedder)
