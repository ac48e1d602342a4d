from pathlib import Path

import orjson

from benchmarks.generated import write_reviews


def test_a_file_is_the_beginning_of_any_longer_one_of_its_seed(tmp_path: Path) -> None:
    for name, size, seed in (("short", 500_000, 1), ("long", 6_000_000, 1), ("other", 500_000, 2)):
        write_reviews(tmp_path / name, size, seed)
    short = (tmp_path / "short").read_bytes()
    assert (tmp_path / "long").read_bytes().startswith(short)
    assert (tmp_path / "other").read_bytes() != short
    assert 500_000 <= len(short) < 600_000
    assert short.endswith(b"}\n")


def test_few_lines_are_malformed(tmp_path: Path) -> None:
    write_reviews(tmp_path / "file", 20_000_000)
    lines = (tmp_path / "file").read_bytes().splitlines()
    sound = 0
    for line in lines:
        try:
            sound += isinstance(orjson.loads(line)["reviewText"], str)
        except (ValueError, KeyError, TypeError):
            continue
    assert 0 < len(lines) - sound < 0.003 * len(lines)
