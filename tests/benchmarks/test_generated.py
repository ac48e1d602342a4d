from pathlib import Path

import orjson

from benchmarks import generated


def is_sound(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line)["reviewText"], str)
    except (ValueError, KeyError, TypeError):
        return False


def test_file_is_a_prefix_of_longer_files_of_its_seed_with_few_malformed_lines(tmp_path: Path, monkeypatch) -> None:
    for name, size in (("_SLOTS", 1 << 14), ("_WORDS", 1_000)):  # a small table of tokens
        monkeypatch.setattr(generated, name, size)
    for name, size, seed in (("short", 500_000, 1), ("long", 6_000_000, 1), ("other", 500_000, 2)):
        generated.write_reviews(tmp_path / name, size, seed)
    short, long = ((tmp_path / name).read_bytes() for name in ("short", "long"))
    assert long.startswith(short)
    assert (tmp_path / "other").read_bytes() != short
    assert 500_000 <= len(short) < 600_000
    assert short.endswith(b"}\n")
    sound = [is_sound(line) for line in long.splitlines()]
    assert 0 < sound.count(False) < 0.003 * len(sound)
