"""An embedder that is a table: each piece of a word has a vector, and a text is their mean.

What lives here: the table and the cutting of texts into its pieces. What must never live here: the weights. They
are those of the package `wordllama` (MIT), distilled by its author from the token tables of several large language
models, whose own licences its users weigh themselves: see docs/search.md. A text takes some tens of microseconds,
so that a query may embed what nobody has embedded yet.

Pieces are cut as byte-pair encoding says, in plain Python: a text is a row of words, merges do not reach over the
mark before a word, and most words come again and again, so each is cut once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.model.instants import Instant
from core.ports import EmbedKind
from infra.embedders.places import STATIC_HINT, NotInstalledError, folder_of
from infra.embedders.weights import read_json, read_safetensors

_MARK: Final = "\u2581"  # stands before each word, for the space
_WORDS: Final = re.compile(f"{_MARK}*[^{_MARK}]+|{_MARK}+")
_WORDS_KEPT: Final = 65_536
_LONGEST: Final = 64  # characters of one "word" that are merged; what is longer is no word of any language
_TABLE: Final = "embedding.weight"


class Bpe:
    """Byte-pair encoding over characters, with bytes for characters that have no piece."""

    def __init__(self, vocab: Mapping[str, int], merges: Sequence[Any]) -> None:
        pairs = [tuple(one.split(" ")) if isinstance(one, str) else tuple(one) for one in merges]
        self._ranks = {pair: rank for rank, pair in enumerate(pairs)}
        self._vocab = vocab
        self._bytes = [vocab.get(f"<0x{value:02X}>", 0) for value in range(256)]
        self._cut = lru_cache(maxsize=_WORDS_KEPT)(self._cut_word)

    def ids(self, text: str) -> list[int]:
        """The pieces of a text, by their numbers."""
        marked = (_MARK + text).replace(" ", _MARK)
        return [piece for word in _WORDS.findall(marked) for piece in self._cut(word)]

    def _cut_word(self, word: str) -> tuple[int, ...]:
        out: list[int] = []
        for start in range(0, len(word), _LONGEST):
            for piece in self._merged(list(word[start : start + _LONGEST])):
                found = self._vocab.get(piece)
                if found is None:
                    out.extend(self._bytes[value] for value in piece.encode("utf-8", "replace"))
                else:
                    out.append(found)
        return tuple(out)

    def _merged(self, parts: list[str]) -> list[str]:
        """Merge the pair that was learnt first, the leftmost of equals, until none is left."""
        worst = len(self._ranks)
        while len(parts) > 1:
            ranks = [self._ranks.get(pair, worst) for pair in pairwise(parts)]
            best = min(ranks)
            if best == worst:
                break
            at = ranks.index(best)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return parts


class StaticEmbedder:
    """The mean of a text's pieces. Safe to share between threads.

    Args:
        folder: holds `weights/*.safetensors` and `tokenizers/*.json`; by default the installed package's.
    """

    local: Final = True

    def __init__(self, folder: Path | None = None) -> None:
        root = folder or folder_of("wordllama", "weights", STATIC_HINT).parent
        weights = sorted((root / "weights").glob("*.safetensors"))
        tokenizers = sorted((root / "tokenizers").glob("*.json"))
        if not weights or not tokenizers:
            raise NotInstalledError(STATIC_HINT)
        arrays = read_safetensors(weights[0])
        if _TABLE not in arrays:
            raise NotInstalledError(f"{weights[0]} has no table of pieces")
        table = arrays[_TABLE]
        model = read_json(tokenizers[0]).get("model", {})
        if model.get("type") != "BPE":
            raise NotInstalledError(f"{tokenizers[0]} is no byte-pair encoding")
        self._table = table  # as stored, half precision: 16 MB
        self._bpe = Bpe(model["vocab"], model["merges"])
        self.dimension = int(table.shape[1])
        self.model = f"static:{weights[0].stem}:{self.dimension}"

    def embed(self, texts: Sequence[str], kind: EmbedKind, deadline: Instant) -> Sequence[Sequence[float]]:
        """One vector for each text, of length 1; zeros for a text without a piece."""
        del kind, deadline
        out = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            ids = [one for one in self._bpe.ids(text) if one < len(self._table)] if text.strip() else []
            if ids:
                mean = self._table[ids].astype(np.float32).mean(axis=0)
                out[row] = mean / max(float(np.linalg.norm(mean)), 1e-9)
        return out  # type: ignore[return-value]  # rows of an array are sequences of floats
