"""Mutated lines of every format: the same reviews, counts and places of malformed lines as by the oracle, no crash."""

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.corpus.reading.accidents import KINDS, content_of
from tests.corpus.reading.cuts import assert_as_the_oracle, pieces

BLOCK_LINES = 50


@pytest.fixture(autouse=True)
def deep_stack() -> Iterator[None]:
    """What the oracle adds to the stack must not decide which depth of nesting is malformed."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(3_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("blocks", [30, pytest.param(2_000, marks=pytest.mark.soak)])
def test_mutated_lines_are_read_as_the_oracle_reads_them(tmp_path: Path, name: str, blocks: int) -> None:
    kind = KINDS[name]
    for seed in range(blocks):
        chance = random.Random(f"{name} {seed}")  # the same lines each time; what differs is left in the file
        content = content_of(kind, chance, BLOCK_LINES)
        cuts = [chance.randrange(len(content) + 1) for _ in range(chance.randrange(6))]
        ranges = pieces(tmp_path / "content", content, [] if kind.form.kind == "csv" else cuts, kind.form, kind.code)
        assert_as_the_oracle(ranges, replace(kind.file, content=content), kind.settings)
