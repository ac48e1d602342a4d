"""Texts to the numbers of their bytes, a block of texts at a time: rule 1c of docs/dataset.md, fast."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from corpus.byte_words import NAMES, NUMBERS, bytes_of
from corpus.dictionary import Ids, TokenisedTexts


class ByteDictionary:
    """As corpus.dictionary.Dictionary, of bytes: their ids are their numbers, and all are known."""

    letters = 0

    def __len__(self) -> int:
        return len(NAMES)

    def __call__(self, texts: Sequence[str]) -> TokenisedTexts:
        """The bytes of some texts; a text's cleaned form is its bytes."""
        encoded = [bytes_of(text) for text in texts]
        ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
        ids = np.frombuffer(b"".join(encoded), np.uint8).astype(np.uint32)
        cleaned = np.frombuffer(b" ".join([*encoded, b""]), np.uint8)
        return TokenisedTexts(ids, ends, cleaned, ends + np.arange(1, len(ends) + 1))

    def add(self, words: bytes) -> Ids:
        """The numbers of bytes, whose names have a space between."""
        return np.array([NUMBERS[name] for name in words.decode().split()], np.uint32)

    def join_words(self, ids: npt.NDArray[Any]) -> bytes:
        """The names of bytes, with a space between."""
        return " ".join(NAMES[number] for number in ids.tolist()).encode()

    def clear(self) -> None:
        """There is nothing to forget."""
