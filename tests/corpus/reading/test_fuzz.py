"""Readers return the same reviews, counts and malformed lines as the oracle from mutated lines of each format."""

import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from corpus.dataset_settings import Settings
from corpus.reading.formats import MAX_LINE_BYTES, Format
from tests import oracle
from tests.corpus.reading.cuts import assert_equals_oracle_reading, pieces
from tests.corpus.reading.inputs.beginnings import tuples

BLOCK_LINES = 50
TABLE = yaml.safe_load(Path(__file__).with_name("accidents.yaml").read_text())
# Nested more deeply than any parser allows, so all parsers agree that it is malformed.
NEVER_NESTED = 5_000
NESTED = ("[" * 100 + "]" * 100, '{"a":' * 90 + "1" + "}" * 90, "[" * NEVER_NESTED + "]" * NEVER_NESTED)
WORDS = tuple(letter * length for letter, length in zip("abcdefg", (7, 8, 9, 15, 16, 17, 300), strict=True))
OTHERS = ("9" * 400, "1" * 20, " ", "  \t\r", "x'" * 50)
TOKENS = (
    *(each.encode("latin-1") for each in TABLE["no UTF-8"]),
    *(each.encode() for each in (*TABLE["tokens"], *NESTED, *WORDS, *OTHERS)),
)


class Kind:
    """Format in the readers' form and in the oracle's form, with lines to mutate."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.row, self.form = row, Format(**tuples(row["format"]))
        self.settings = Settings(**tuples(row.get("settings", {})))
        self.code: int | None = row.get("code")
        shown = {name: getattr(self.form, name) for name in ("kind", "text", "value", "header", "separator")}
        self.file = oracle.File(b"", **shown, label=None if self.code is None else str(self.code))
        self.first: bytes = row.get("first", "").encode()
        self._values = TABLE["values"][row["values"]] if isinstance(row["values"], str) else row["values"]

    def line(self, chance: random.Random) -> bytes:
        return (self._columns(chance) if "columns" in self.row else self._json(chance)).encode()

    def _json(self, chance: random.Random) -> str:
        texts = TABLE["texts"]
        said = [f'"{field}": "{chance.choice(texts)}"' for field in self.form.text]
        said += [f'"{self.form.value}": {chance.choice(self._values)}']
        said += [f'"other": {{"n": [1, -2.5e3, "{chance.choice(texts)}"]}}']
        chance.shuffle(said)
        return "{" + ", ".join(said) + "}"

    def _columns(self, chance: random.Random) -> str:
        """Return a line of columns in the format's order.

        The order is a string of `t` for a text, `v` for the rating or label, and `o` for any other column.
        """
        quote = self.row.get("quote", "")
        held = [chance.choice(self._values if kind == "v" else TABLE["texts"]) for kind in self.row["columns"]]
        quoted = [f"{quote}{each}{quote}" if quote and chance.random() < 0.7 else each for each in held]
        return str(self.row.get("joined", self.form.separator)).join(quoted)


KINDS = {row["name"]: Kind(row) for row in TABLE["kinds"]}


def mutated(chance: random.Random, line: bytes, other: bytes) -> bytes:
    """Return a line after random changes. Some of the changes insert a piece of the line `other`."""
    for _ in range(chance.choice((0, 0, 1, 1, 1, 2, 5))):
        at = chance.randrange(len(line) + 1)
        accident = chance.random()
        if accident < 0.35:
            line = line[:at] + chance.choice(TOKENS) + line[at:]
        elif accident < 0.55 and at < len(line):
            line = line[:at] + bytes([line[at] ^ 1 << chance.randrange(8)]) + line[at + 1 :]
        elif accident < 0.7:
            line = line[:at] + line[at + chance.randrange(12) :]
        elif accident < 0.8:
            line = line[:at] + other[chance.randrange(len(other) + 1) :]
        elif accident < 0.9:
            line = line[:at] + bytes(chance.randrange(256) for _ in range(chance.randrange(5))) + line[at:]
        elif accident < 0.95:
            line = line[:at] + line[max(at - chance.randrange(30), 0) : at] + line[at:]
        else:
            line = line[:at]
    return line


def content_of(kind: Kind, chance: random.Random, lines: int) -> bytes:
    """Return the content of a file with approximately `lines` mutated lines."""
    made = [kind.line(chance) for _ in range(lines)]
    broken = [mutated(chance, line, made[chance.randrange(lines)]) for line in made]
    broken += [b"\r".join(made[:3]), *kind.first.splitlines()]  # lines with carriage returns, and a repeated header
    mark = b"\xef\xbb\xbf" if chance.random() < 0.2 else b""
    if kind.form.kind != "csv" and chance.random() < 0.02:  # the oracle needs a second for such a csv record
        broken[chance.randrange(lines)] += b" " * (MAX_LINE_BYTES - chance.randrange(600))
    return mark + kind.first + b"\n".join(broken) + (b"\n" if chance.random() < 0.5 else b"")


@pytest.fixture(autouse=True)
def deep_stack():
    """Raise the recursion limit, so that the oracle does not fail at a nesting depth that is allowed."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(3_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("blocks", [30, pytest.param(2_000, marks=pytest.mark.soak)])
def test_mutated_lines_are_read_as_the_oracle_reads_them(tmp_path, name, blocks) -> None:
    kind = KINDS[name]
    for seed in range(blocks):
        # Each run of the test has the same seeds, and so the same lines.
        chance = random.Random(f"{name} {seed}")
        content = content_of(kind, chance, BLOCK_LINES)
        cuts = [chance.randrange(len(content) + 1) for _ in range(chance.randrange(6))]
        ranges = pieces(tmp_path / "content", content, [] if kind.form.kind == "csv" else cuts, kind.form, kind.code)
        assert_equals_oracle_reading(ranges, replace(kind.file, content=content), kind.settings)
