"""Generated texts (benchmarks/gpu/texts.py) as a CSV file, as Yelp polarity's.

Do not join words one by one: all words of a block are gathered from one array of bytes, in which shorter words end with
zeros, and the zeros are left out.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.gpu.texts import WORDS, draw_texts, spelled


def write_csv(path: Path, count: int, *, seed: int) -> None:
    """Write `count` texts with their labels, which are 1 and 2."""
    with path.open("wb") as file:
        for lines, labels in _lines(count, seed):
            quoted = (b'"%d","%s"\n' % (label + 1, line) for line, label in zip(lines, labels, strict=True))
            file.write(b"".join(quoted))


def _lines(count: int, seed: int) -> Iterator[tuple[list[bytes], list[int]]]:
    """The texts of each block, and their labels."""
    spelling = np.array([f"{spelled(word)} ".encode() for word in range(WORDS)])
    widths = np.char.str_len(spelling)
    for words, lengths, labels in draw_texts(count, seed=seed):
        letters = spelling[words].view(np.uint8)
        joined = letters[letters > 0].tobytes()
        ends = np.cumsum(widths[words])[np.cumsum(lengths) - 1].tolist()
        lines = [joined[start : end - 1] for start, end in pairwise([0, *ends])]
        yield lines, labels.tolist()
