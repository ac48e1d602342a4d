from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.ranges import Range, cut, parse_range, read_lines


@settings(deadline=None)
@given(
    st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=30),
    st.booleans(),
    st.lists(st.integers(0, 700), max_size=6),
)
def test_ranges_cut_anywhere_give_every_line_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], last_newline: bool, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("ranges") / "file"
    content = b"\n".join(lines) + (b"\n" if last_newline and lines else b"")
    path.write_bytes(content)
    edges = sorted({0, len(content), *(place for place in cuts if place < len(content))})
    ranges = [Range(str(path), start, end) for start, end in pairwise(edges)]
    found = [line for part in ranges for line in read_lines(part, lambda _: None)]
    expected = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    assert found == (expected[:-1] if not expected[-1] and content != b"\xef\xbb\xbf" else expected)


def test_the_bytes_reported_are_those_of_the_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a line of some length\n" * 200_000)
    reported: list[int] = []
    for part in cut([path], tasks=3):
        for _ in read_lines(part, reported.append):
            pass
    assert sum(reported) == pytest.approx(path.stat().st_size, rel=0.02)
    assert len(reported) > 3


def test_files_are_cut_for_all_tasks_but_compressed_ones_not(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.json", tmp_path / "b.json.gz"
    plain.write_bytes(b"x" * (9 << 20))
    packed.write_bytes(b"x" * (3 << 20))
    ranges = cut([plain, packed], tasks=4)
    assert [part.end - part.start for part in ranges] == [3 << 20] * 3 + [3 << 20]
    assert [part.path for part in ranges].count(str(packed)) == 1


@given(st.text(), st.integers(0, 2**63), st.integers(0, 2**63))
def test_a_range_survives_its_way_through_a_line(name: str, start: int, end: int) -> None:
    line = Range(name, start, end).line()
    assert b"\n" not in line
    assert parse_range(line) == Range(name, start, end)
