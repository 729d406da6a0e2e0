"""Embedders behind services: what goes over each wire, what comes of every kind of answer, and what is tried again."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import msgspec
import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from botocore.response import StreamingBody
from botocore.session import get_session
from botocore.stub import Stubber

from core.models.embedder import parse_embedder
from core.ports import Embedder, EmbedderFault, EmbedderGarbled, EmbedderRefused, EmbedderUnavailable
from infra.embedders.bedrock import BedrockEmbedder
from infra.embedders.factory import World, open_embedder
from infra.embedders.patience import Repeater, batches
from tests.doubles import CountingEntropy, FakeClock

KEY = "sk-a-key-of-the-tests-0123456789"
SECRET = "a text nobody may read"
HOUR = 3_600_000


class Service(httpx.BaseTransport):
    """Answers each request with the next of `answers`, the last one over and over, and keeps the requests."""

    def __init__(self, *answers: Callable[[Any], httpx.Response] | httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, httpx.Response) else answer(json.loads(request.content))

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]


def vector(text: str) -> list[float]:
    """Eight numbers that tell texts apart."""
    return [float(len(text)), *map(float, text.encode()[:7].ljust(7, b"\0"))]


def openai_answer(body: Any) -> httpx.Response:
    """As the wire's documentation shows it, the vectors in another order than the texts."""
    data = [
        {"object": "embedding", "index": place, "embedding": vector(text)}
        for place, text in enumerate(body["input"])
    ]
    return httpx.Response(
        200,
        json={
            "object": "list",
            "data": data[::-1],
            "model": body["model"],
            "usage": {"prompt_tokens": 8, "total_tokens": 8},
        },
    )


def ollama_answer(body: Any) -> httpx.Response:
    """As Ollama's documentation shows it."""
    return httpx.Response(
        200,
        json={
            "model": body["model"],
            "embeddings": [vector(text) for text in body["input"]],
            "total_duration": 14,
        },
    )


NAMES = {"openai": "openai:some-model@https://models.example/v1", "ollama": "ollama:some-model"}
ANSWERS = {"openai": openai_answer, "ollama": ollama_answer}


class Opened:
    """An embedder over a service, with the time and chance of the test."""

    def __init__(self, name: str, service: Service, *, dimension: int = 8) -> None:
        self.clock = FakeClock()
        self.service = service
        world = World(self.clock, CountingEntropy(), key=lambda: KEY, transport=service)
        found = open_embedder(parse_embedder(name, dimension), world)
        assert found is not None
        self.embedder: Embedder = found

    def embed(self, *texts: str, kind: Any = "passage", ms: int = HOUR) -> Sequence[Sequence[float]]:
        return self.embedder.embed(list(texts), kind, self.clock.now() + ms)


@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_vectors_come_in_the_order_of_the_texts(provider: str) -> None:
    """Whatever the order of the answer; many texts go in several requests."""
    opened = Opened(NAMES[provider], Service(ANSWERS[provider]))
    texts = [f"text number {place}" for place in range(300)]
    assert [list(row) for row in opened.embed(*texts)] == [vector(text) for text in texts]
    assert 3 <= len(opened.service.requests) <= 5
    assert opened.embed() == []
    assert opened.embedder.local is False


def test_the_openai_wire() -> None:
    """The request as it is documented: a bearer key, float vectors, and a shorter dimension where the model has one."""
    opened = Opened("openai:text-embedding-3-small", Service(openai_answer), dimension=256)
    opened.embed("hello", "")
    [request] = opened.service.requests
    assert str(request.url) == "https://api.openai.com/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert opened.service.bodies == [
        {
            "model": "text-embedding-3-small",
            "input": ["hello", " "],
            "encoding_format": "float",
            "dimensions": 256,
        }
    ]
    assert opened.embedder.model == "openai:text-embedding-3-small:256"
    assert opened.embedder.dimension == 256
    other = Opened(NAMES["openai"], Service(openai_answer))
    other.embed("hello")
    assert "dimensions" not in other.service.bodies[0]


def test_the_ollama_wire() -> None:
    """The request as it is documented; what a model wants before a question and before a passage is put there."""
    opened = Opened("ollama:nomic-embed-text:v1.5", Service(ollama_answer))
    opened.embed("tea", kind="query")
    opened.embed("tea", kind="passage")
    assert [body["input"] for body in opened.service.bodies] == [
        ["search_query: tea"],
        ["search_document: tea"],
    ]
    assert str(opened.service.requests[0].url) == "http://127.0.0.1:11434/api/embed"
    assert "authorization" not in opened.service.requests[0].headers


@pytest.mark.parametrize("provider", ["openai", "ollama"])
@pytest.mark.parametrize(
    ("answer", "fault", "requests"),
    [
        (httpx.Response(429, headers={"retry-after": "1"}), EmbedderUnavailable, 6),
        (httpx.Response(500, text="oops"), EmbedderUnavailable, 5),
        (httpx.Response(503), EmbedderUnavailable, 5),
        (httpx.ConnectError("refused"), EmbedderUnavailable, 5),
        (httpx.ReadTimeout("slow"), EmbedderUnavailable, 2),
        (httpx.Response(401, json={"error": {"code": "invalid_api_key"}}), EmbedderRefused, 1),
        (httpx.Response(404), EmbedderRefused, 1),
        (httpx.Response(400, text=SECRET), EmbedderRefused, 1),
        (httpx.Response(302, headers={"location": "http://169.254.169.254/"}), EmbedderRefused, 1),
        (httpx.Response(200, text="<html>"), EmbedderGarbled, 2),
        (httpx.Response(200, json=[]), EmbedderGarbled, 2),
        (httpx.Response(200, json={}), EmbedderGarbled, 2),
        (httpx.Response(200, json={"data": [], "embeddings": []}), EmbedderGarbled, 2),
        (
            httpx.Response(200, json={"data": [{"index": 7, "embedding": [1.0]}], "embeddings": ["x"]}),
            EmbedderGarbled,
            2,
        ),
        (httpx.Response(200, json={"data": [{"index": 0}], "embeddings": [None]}), EmbedderGarbled, 2),
    ],
)
def test_every_bad_answer_is_a_fault_of_its_kind(
    provider: str, answer: Any, fault: type[EmbedderFault], requests: int
) -> None:
    """What may pass is tried again with growing waits, the rest is not; no fault quotes a text or a key."""
    opened = Opened(NAMES[provider], Service(lambda _: _copied(answer)))
    with pytest.raises(fault) as caught:
        opened.embed(SECRET)
    assert len(opened.service.requests) == requests
    assert len(opened.clock.slept) == requests - 1
    assert SECRET not in str(caught.value)
    assert KEY not in str(caught.value)


def _copied(answer: Any) -> httpx.Response:
    if isinstance(answer, Exception):
        raise answer
    return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


def test_what_passes_is_forgotten() -> None:
    """An answer after two failures is the answer."""
    opened = Opened(NAMES["openai"], Service(httpx.Response(503), httpx.Response(429), openai_answer))
    assert list(opened.embed("tea")[0]) == vector("tea")


def test_no_wait_goes_beyond_the_deadline() -> None:
    """A service that asks to wait longer than there is time is not waited for; without time nothing is asked."""
    opened = Opened(NAMES["openai"], Service(lambda _: httpx.Response(429, headers={"retry-after": "60"})))
    with pytest.raises(EmbedderUnavailable):
        opened.embed("tea", ms=5000)
    assert (len(opened.service.requests), opened.clock.slept) == (1, [])
    with pytest.raises(EmbedderUnavailable):
        opened.embed("tea", ms=0)
    assert len(opened.service.requests) == 1


def test_batches_keep_the_order_and_the_bounds() -> None:
    """Cut by number and by size; a text larger than the bound goes alone."""
    assert batches(["a", "b", "c"], 2, 100) == [["a", "b"], ["c"]]
    assert batches(["aaaa", "b", "cccc"], 9, 5) == [["aaaa", "b"], ["cccc"]]
    assert batches(["a" * 9, "b"], 9, 5) == [["a" * 9], ["b"]]
    assert batches([], 2, 100) == []


# --- Bedrock


class Aws:
    """What stands for `Clients`: one client, its answers stubbed."""

    def __init__(self) -> None:
        session = get_session()
        self.client = session.create_client(
            "bedrock-runtime", region_name="eu-west-1", aws_access_key_id="a", aws_secret_access_key="b"
        )
        self.stub = Stubber(self.client)
        self.waits: list[float] = []

    def bedrock(self, left_s: float) -> Any:
        self.waits.append(left_s)
        return self.client


TITAN = "amazon.titan-embed-text-v2:0"


def bedrock(aws: Aws, model: str = TITAN, dimension: int = 256) -> tuple[BedrockEmbedder, FakeClock]:
    clock = FakeClock()
    aws.stub.activate()
    embedder = BedrockEmbedder(model, dimension, aws, clock, Repeater(clock, CountingEntropy()))  # type: ignore[arg-type]
    return embedder, clock


def answer(value: Any) -> dict[str, Any]:
    body = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return {"body": StreamingBody(io.BytesIO(body), len(body)), "contentType": "application/json"}


def asked(model: str, value: Any) -> dict[str, Any]:
    return {
        "modelId": model,
        "body": msgspec.json.encode(value),
        "accept": "application/json",
        "contentType": "application/json",
    }


def test_titan_takes_one_text_a_call() -> None:
    """The request and the reply as Bedrock documents them."""
    aws = Aws()
    aws.stub.add_response(
        "invoke_model",
        answer(
            {"embedding": [0.5, 0.25], "inputTextTokenCount": 2, "embeddingsByType": {"float": [0.5, 0.25]}}
        ),
        asked(TITAN, {"inputText": "green tea", "dimensions": 256, "normalize": True}),
    )
    embedder, clock = bedrock(aws)
    assert embedder.embed(["green tea"], "passage", clock.now() + HOUR) == [[0.5, 0.25]]
    assert embedder.model == f"bedrock:{TITAN}:256"
    aws.stub.assert_no_pending_responses()


def test_many_texts_of_titan_keep_their_order() -> None:
    """Calls made at the same time give their vectors in the order of the texts."""

    class Echo:
        def bedrock(self, left_s: float) -> Any:
            return self

        def invoke_model(self, **request: Any) -> Any:
            text = json.loads(request["body"])["inputText"]
            return answer({"embedding": [float(text)]})

    clock = FakeClock()
    embedder = BedrockEmbedder(TITAN, 256, Echo(), clock, Repeater(clock, CountingEntropy()))  # type: ignore[arg-type]
    texts = [str(place) for place in range(100)]
    assert embedder.embed(texts, "passage", clock.now() + HOUR) == [[float(text)] for text in texts]
    assert embedder.embed([], "passage", clock.now() + HOUR) == []


def test_cohere_tells_questions_from_passages() -> None:
    """Its wire: many texts a call, the kind of input named, vectors as a list or by type."""
    model = "cohere.embed-multilingual-v3"
    aws = Aws()
    for kind, reply in (("search_query", [[1.0]]), ("search_document", {"float": [[2.0]]})):
        aws.stub.add_response(
            "invoke_model",
            answer({"id": "1", "embeddings": reply, "response_type": "embeddings_floats"}),
            asked(model, {"texts": ["tea"], "input_type": kind, "truncate": "END"}),
        )
    embedder, clock = bedrock(aws, model, 1024)
    assert embedder.embed(["tea"], "query", clock.now() + HOUR) == [[1.0]]
    assert embedder.embed(["tea"], "passage", clock.now() + HOUR) == [[2.0]]


@pytest.mark.parametrize(
    ("code", "status", "fault", "calls"),
    [
        ("ThrottlingException", 429, EmbedderUnavailable, 6),
        ("ModelTimeoutException", 408, EmbedderUnavailable, 5),
        ("InternalServerException", 500, EmbedderUnavailable, 5),
        ("SomethingNew", 503, EmbedderUnavailable, 5),
        ("AccessDeniedException", 403, EmbedderRefused, 1),
        ("ValidationException", 400, EmbedderRefused, 1),
        ("ResourceNotFoundException", 404, EmbedderRefused, 1),
    ],
)
def test_what_bedrock_raises_is_a_fault_of_its_kind(
    code: str, status: int, fault: type[EmbedderFault], calls: int
) -> None:
    """By its code, or by its status where the code is new; the message of AWS, which may quote, is left out."""
    aws = Aws()
    for _ in range(calls):
        aws.stub.add_client_error("invoke_model", code, SECRET, http_status_code=status)
    embedder, clock = bedrock(aws)
    with pytest.raises(fault) as caught:
        embedder.embed([SECRET], "query", clock.now() + HOUR)
    assert SECRET not in str(caught.value)
    aws.stub.assert_no_pending_responses()


@pytest.mark.parametrize("reply", [b"<html>", {}, {"embedding": None}, {"embedding": "x"}, []])
def test_a_reply_that_is_none_is_garbled(reply: Any) -> None:
    """Whatever it is instead of a vector."""
    aws = Aws()
    for _ in range(2):
        aws.stub.add_response("invoke_model", answer(reply))
    embedder, clock = bedrock(aws)
    with pytest.raises(EmbedderGarbled):
        embedder.embed(["tea"], "query", clock.now() + HOUR)


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (ReadTimeoutError(endpoint_url="https://x"), EmbedderUnavailable),
        (ClientError({"Error": {"Code": "ServiceUnavailableException"}}, "InvokeModel"), EmbedderUnavailable),
    ],
)
def test_no_answer_of_bedrock_may_come_later(error: Exception, fault: type[EmbedderFault]) -> None:
    """A connection that broke off or timed out is not the caller's fault."""

    class Broken:
        def bedrock(self, left_s: float) -> Any:
            return self

        def invoke_model(self, **_: Any) -> Any:
            raise error

    clock = FakeClock()
    embedder = BedrockEmbedder(TITAN, 256, Broken(), clock, Repeater(clock, CountingEntropy()))  # type: ignore[arg-type]
    with pytest.raises(fault):
        embedder.embed(["tea"], "query", clock.now() + HOUR)
