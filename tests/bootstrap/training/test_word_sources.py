"""Runs on sources that are silent, too fast, or full of garbage."""

from pathlib import Path

import pytest

from corpus.stream.parts import part_numbers
from corpus.stream.progress import read_status
from experiments.records import causes
from experiments.records.runs import read_run
from tests.bootstrap.training.word_runs import WordRun
from tests.corpus.stream.reading import begin
from tests.corpus.stream.sender import Sender
from tests.processes import rank_processes
from tests.trainer.embeddings import made_text

pytestmark = [pytest.mark.end_to_end, pytest.mark.soak]

TEXT = "\n".join(made_text.lines(3_000)) + "\n"
AHEAD = 3


def test_a_run_waits_for_a_silent_source_and_counts_how_long(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "1").write_text(TEXT)
    stream = begin(tmp_path / "stream", tmp_path / "texts", part_rows=128, follow=True, quiet_seconds=1.0)
    words = len(TEXT.split())
    with WordRun(stream, tmp_path / "run") as run:
        run.until(lambda: run.lines("checkpoint"))
        for number in (1, 2, 3):  # also what fills no part is learnt from
            run.until(lambda: run.learnt()["words_seen"] == number * words)  # noqa: B023
            run.until(lambda: run.lines("waiting") and not run.lines("waiting")[-1]["seconds"])
            if number < 3:
                (tmp_path / "texts" / f"{number + 1}").write_text(TEXT)
        run.stops()
        waited = sum(line["seconds"] for line in run.lines("waiting"))
        assert 0 < waited <= run.summary()["times"]["waiting"]
    assert read_status(stream).waiting_seconds > 0
    found = {each.name: each.seconds for each in causes.causes(read_run(tmp_path / "run"))}
    assert found[causes.TEXT] == pytest.approx(run.summary()["times"]["waiting"])


def test_a_source_that_became_shorter_while_a_run_was_stopped_is_told(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(TEXT)
    stream = begin(tmp_path / "stream", tmp_path / "log", part_rows=128, follow=True, quiet_seconds=1.0)
    with WordRun(stream, tmp_path / "run") as run:
        run.until(lambda: run.lines("waiting"))
        run.stops()
    (tmp_path / "log").write_text(TEXT[: len(TEXT) // 4])
    with WordRun(stream, tmp_path / "run", "--resume") as run:
        said = " ".join(run.ends(1).split())
    assert f"/log has {len(TEXT) // 4:,} bytes, and " in said
    assert "were read of it; give new files new names, or begin a new stream" in said


def test_a_source_that_is_too_fast_waits_and_neither_reader_nor_rank_grows(tmp_path: Path) -> None:
    lines = [line.encode() for line in made_text.lines(40_000)]
    memory: list[tuple[int, int]] = []
    waiting: list[int] = []
    with Sender(lines) as sender:
        stream = begin(tmp_path / "stream", sender.address, part_rows=128, ahead=AHEAD)

        def look(run: WordRun) -> bool:
            processes = [*run.readers()[:1], *rank_processes(0)]
            if len(processes) == 2:
                memory.append(tuple(each.memory_info().rss for each in processes))
                waiting.append(len(part_numbers(stream / "reader-0")))
            return (stream / "reader-0" / "end.json").exists()

        with WordRun(stream, tmp_path / "run", "--slow", "0:1@1:10") as run:
            run.until_checkpoints(2)
            run.until(lambda: look(run))
            run.ends()
    assert max(waiting) <= 2 * AHEAD + 2  # and those of which readers have not heard yet that they are in a checkpoint
    assert read_status(stream).paused_seconds > read_status(stream).waiting_seconds
    for before, most in zip(memory[len(memory) // 4], map(max, zip(*memory, strict=True)), strict=True):
        assert most - before < 20 << 20
    assert run.learnt()["words_seen"] == 12 * len(lines)


def garbage(share: float) -> list[bytes]:
    """Lines of which such a share is no text."""
    good = [line.encode() for line in made_text.lines(3_000)]
    kinds = (b"\xff\xfe not UTF-8", b"\x7fELF\x00\x01 of a program", b"x" * (10 << 20))
    bad = [kinds[number % 2] for number in range(round(share * len(good)))]
    return [*good[:1_500], kinds[2], *bad, *good[1_500:]]


def test_garbage_is_left_out_counted_and_told(tmp_path: Path) -> None:
    with Sender(garbage(0.02)) as sender:
        stream = begin(tmp_path / "stream", sender.address, part_rows=128)
        with WordRun(stream, tmp_path / "run") as run:
            said = " ".join(run.ends().split())
    assert "61 of 3,061 lines are malformed (not UTF-8, with NUL, or longer than 4 MiB), and were left out" in said
    assert run.summary()["vocabulary"] == 24
    assert run.learnt()["words_seen"] == 12 * 3_000


def test_too_much_garbage_ends_the_run_with_an_example(tmp_path: Path) -> None:
    with Sender(garbage(0.2)) as sender:
        stream = begin(tmp_path / "stream", sender.address, part_rows=16)
        with WordRun(stream, tmp_path / "run") as run:
            said = " ".join(run.ends(1).split())
    assert "lines are malformed (not UTF-8, with NUL, or longer than 4 MiB), more than 5%, such as line 1,501" in said
    assert not (tmp_path / "run" / "model").exists()
