"""Which embedder, as a value: what a setting names, and how many numbers its vectors have.

What lives here: the names and what is known of the models. What must never live here: a wire or weights
(`infra.embedders`), and a key.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

import msgspec

Provider = Literal["none", "static", "minilm", "bedrock", "openai", "ollama"]
PROVIDERS: Final[tuple[Provider, ...]] = get_args(Provider)
FORMS: Final = (
    "none, static, minilm, bedrock:<model>, openai:<model>[@<base URL>] or ollama:<model>[@<base URL>]"
)
MAX_DIMENSION: Final = 4096
TITAN: Final = "amazon.titan-embed-text-v2"
COHERE: Final = "cohere.embed-"
TITAN_DIMENSIONS: Final = (256, 512, 1024)
COHERE_DIMENSION: Final = 1024
_TITAN_USUAL: Final = 512
OPENAI: Final = {"text-embedding-3-small": 512, "text-embedding-3-large": 512, "text-embedding-ada-002": 1536}
"""What is asked for where nothing is configured; the first two can shorten their vectors."""
OPENAI_SHORTENED: Final = frozenset({"text-embedding-3-small", "text-embedding-3-large"})
OLLAMA: Final = {
    "nomic-embed-text": 768,
    "mxbai-embed-large": 1024,
    "all-minilm": 384,
    "bge-m3": 1024,
    "snowflake-arctic-embed": 1024,
}


def family(model: str) -> str:
    """An Ollama model's name without its tag: `nomic-embed-text:v1.5` -> `nomic-embed-text`."""
    return model.partition(":")[0]


class EmbedderChoice(msgspec.Struct, frozen=True):
    """What a setting names. model: of a service, or the folder of weights. dimension: 0 for the model's own."""

    provider: Provider = "none"
    model: str = ""
    base: str = ""
    dimension: int = 0


def parse_embedder(text: str, dimension: int = 0) -> EmbedderChoice:
    """The choice a setting names.

    Raises:
        ValueError: it names none; the message says what is possible.
    """
    name, _, rest = text.strip().partition(":")
    provider = next((one for one in PROVIDERS if one == name), None)
    if provider is None:
        raise ValueError(f"{name!r} is no embedder; possible are {FORMS}")
    if provider == "none" and rest:
        raise ValueError("none takes no model")
    model, _, base = rest.partition("@") if provider in {"openai", "ollama"} else (rest, "", "")
    if provider in {"bedrock", "openai", "ollama"} and not model:
        raise ValueError(f"{provider} needs a model: {FORMS}")
    if base and not base.startswith(("http://", "https://")):
        raise ValueError("the base URL begins with https:// or http://")
    if not 0 <= dimension <= MAX_DIMENSION:
        raise ValueError(f"a dimension is at most {MAX_DIMENSION}")
    choice = EmbedderChoice(provider, model, base, dimension)
    return msgspec.structs.replace(choice, dimension=_dimension(choice))


def _dimension(choice: EmbedderChoice) -> int:
    """Numbers in each vector; 0 where the weights say so themselves."""
    if choice.provider == "bedrock":
        if TITAN in choice.model:
            found = choice.dimension or _TITAN_USUAL
            if found not in TITAN_DIMENSIONS:
                raise ValueError(f"Titan V2 gives 256, 512 or 1024 numbers, not {found}")
            return found
        if COHERE in choice.model:
            return COHERE_DIMENSION
        raise ValueError(f"of Bedrock's models {TITAN}... and {COHERE}... are known here")
    if choice.provider == "openai":
        known = OPENAI.get(choice.model, 0)
    elif choice.provider == "ollama":
        known = OLLAMA.get(family(choice.model), 0)
    else:
        return 0
    if not (choice.dimension or known):
        raise ValueError(
            f"how many numbers {choice.model} gives is not known here: set NOEMA_EMBEDDER_DIMENSION"
        )
    return choice.dimension or known
