"""A folder that grows, played fast, with faults: small, as the benchmark plays it for hours."""

from pathlib import Path

import pytest

from benchmarks.growing import play


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["sync", "async:10"])
def test_across_faults_every_word_is_learnt_from_once_the_vectors_are_good_and_memory_stays(
    tmp_path: Path, mode: str
) -> None:
    found = play(tmp_path, hours=2, words_a_second=200, kills=3, mode=mode, part_rows=256)
    assert found.kills == ["reader", "rank", "command"]
    assert found.is_exact
    assert found.words_written == 2 * 3600 * 200
    assert found.sessions == 3
    assert found.loss < 0.9 * 4.16  # that of a model that knows nothing
    assert found.similarity > 0.3
    half = len(found.samples) // 2
    for memory in ([each.reader for each in found.samples], [each.rank for each in found.samples]):
        assert max(memory[half:]) - max(memory[:half]) < 64 << 20  # ranks that go on have read a checkpoint, too
    assert len(list((tmp_path / "texts").iterdir())) <= 4
