"""What NOEMA_EMBEDDER may name, and what is known of the models."""

import pytest

from core.models.embedder import parse_embedder
from functions.embedder_settings import read_embedder


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("none", ("none", "", "", 0)),
        ("static", ("static", "", "", 0)),
        ("minilm:/models/x", ("minilm", "/models/x", "", 0)),
        ("bedrock:amazon.titan-embed-text-v2:0", ("bedrock", "amazon.titan-embed-text-v2:0", "", 512)),
        ("bedrock:cohere.embed-english-v3", ("bedrock", "cohere.embed-english-v3", "", 1024)),
        ("openai:text-embedding-3-small", ("openai", "text-embedding-3-small", "", 512)),
        ("ollama:nomic-embed-text:v1.5", ("ollama", "nomic-embed-text:v1.5", "", 768)),
        ("ollama:bge-m3@http://10.0.0.2:11434", ("ollama", "bge-m3", "http://10.0.0.2:11434", 1024)),
    ],
)
def test_each_form_is_read(text, wanted):
    """Provider, model, base URL and dimension."""
    choice = parse_embedder(text)
    assert (choice.provider, choice.model, choice.base, choice.dimension) == wanted


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"NOEMA_EMBEDDER": "word2vec"}, "NOEMA_EMBEDDER"),
        ({"NOEMA_EMBEDDER": "none:x"}, "NOEMA_EMBEDDER"),
        ({"NOEMA_EMBEDDER": "openai"}, "NOEMA_EMBEDDER"),
        ({"NOEMA_EMBEDDER": "bedrock:meta.llama3"}, "NOEMA_EMBEDDER"),
        ({"NOEMA_EMBEDDER": "openai:my-model@https://x.example/v1"}, "NOEMA_EMBEDDER_DIMENSION"),
        ({"NOEMA_EMBEDDER": "ollama:my-model"}, "NOEMA_EMBEDDER_DIMENSION"),
        ({"NOEMA_EMBEDDER": "openai:my-model@ftp://x", "NOEMA_EMBEDDER_DIMENSION": "8"}, "NOEMA_EMBEDDER"),
        ({"NOEMA_EMBEDDER": "openai:text-embedding-3-small"}, "NOEMA_EMBEDDER_KEY"),
        ({"NOEMA_EMBEDDER_DIMENSION": "many"}, "NOEMA_EMBEDDER_DIMENSION"),
        ({"NOEMA_EMBEDDER_DIMENSION": "0"}, "NOEMA_EMBEDDER_DIMENSION"),
        ({"NOEMA_EMBEDDER_DIMENSION": "99999"}, "NOEMA_EMBEDDER"),
        (
            {"NOEMA_EMBEDDER": "bedrock:amazon.titan-embed-text-v2:0", "NOEMA_EMBEDDER_DIMENSION": "300"},
            "Titan",
        ),
    ],
)
def test_what_is_wrong_is_named(variables, named):
    """By the variable, with what is possible."""
    with pytest.raises(ValueError, match=named):
        read_embedder(variables)


def test_no_key_and_no_place_is_public():
    """What /info shows names the model and nothing else."""
    setting = read_embedder(
        {
            "NOEMA_EMBEDDER": "openai:my-model@https://internal.example/v1",
            "NOEMA_EMBEDDER_DIMENSION": "8",
            "NOEMA_EMBEDDER_KEY": "sk-secret-value",
        }
    )
    assert setting.public_name == "openai:my-model"
    assert "sk-secret" not in repr(setting)
    assert read_embedder({"NOEMA_EMBEDDER": "minilm:/home/me/models"}).public_name == "minilm"
    assert read_embedder({}).public_name == "none"
