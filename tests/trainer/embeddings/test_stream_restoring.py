"""Restoring a lost stream from a checkpoint: no line is lost, and none is repeated."""

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from common.errors import DataError
from corpus.stream.parts import part_numbers, part_path, read_part
from corpus.stream.progress import read_taken
from corpus.stream.stream_settings import read_settings
from tests.corpus.stream.reading import begin, read_until
from tests.trainer.embeddings import made_text
from trainer.computing.threads import Threads
from trainer.config import configured
from trainer.distributed.ranks import Ranks
from trainer.embeddings.initial_state import InitialState, await_first_parts, read_initial_state
from trainer.embeddings.stream_rows import StreamRows, TextStream, restore_stream
from trainer.output import checkpoint
from trainer.task import EpochStatus

READER = "reader-0"
LINES = made_text.lines(3_000)


def read_on(stream: Path) -> None:
    """Run the reader until it would wait for trainers or for more text."""
    read_until(stream, lambda _: True)


def begin_lines(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("\n".join(LINES) + "\n")
    return begin(tmp_path / "stream", tmp_path / "text.txt", follow=True, part_rows=32, ahead=3)


def save(output: Path, task: Mapping[str, Any], step: int) -> None:
    """Write a checkpoint with a task's state, and placeholders for the rest."""
    empty: dict[str, Any] = {name: {} for name in ("config", "progress", "model", "optimiser")}
    head = {"format": checkpoint.FORMAT, "digest": "", "global_batch": 1}
    output.mkdir(exist_ok=True)
    checkpoint.save(output / "checkpoints", {**head, **empty, "task": dict(task)}, steps=step)


def start_of(stream: Path) -> InitialState:
    first = await_first_parts(stream, read_settings(stream), words=100, minutes=None, stop=lambda: False)
    return read_initial_state(stream, first, min_count=1)


def text_of(rows: StreamRows) -> TextStream:
    options = configured({"data": rows.stream, "output": rows.stream, "model": "skipgram"}, endless=True).options
    return TextStream(rows, options, Ranks(rank=0, world_size=1, device=torch.device("cpu"), threads=Threads(1)))


def take(text: TextStream) -> int:
    """Take the next part like ranks do. Return its number."""
    assert text.position.choose(lambda: False, lambda: False, wait=False) is EpochStatus.READY
    text.load_part()
    return int(text.position.plain()["taken"][READER]) - 1


@pytest.mark.parametrize("in_the_middle", [False, True], ids=["between two parts", "within a part"])
def test_parts_continue_after_the_last_one_in_the_checkpoint(tmp_path, in_the_middle):
    stream, output = begin_lines(tmp_path), tmp_path / "output"
    read_on(stream)
    start = start_of(stream)
    rows = StreamRows(stream, read_settings(stream), start, began=0.0)
    text = text_of(rows)
    counted: Counter[str] = Counter()

    def count(number):
        part = read_part(part_path(stream / READER, number))
        counted.update(dict(zip(part.words, part.counts.tolist(), strict=True)))

    for _ in range(3):
        count(take(text))
        text.end_epoch()
    if in_the_middle:
        count(take(text))
    save(output, text.state(), 3)
    text.checkpoint_written()
    read_on(stream)  # parts that it leaves now are lost
    shutil.rmtree(stream)
    begin_lines(tmp_path)
    restore_stream(output, stream)
    assert part_numbers(stream / READER) == [3 if in_the_middle else 2]
    assert read_taken(stream, stream / READER, 4) == 3

    rows_again = StreamRows(stream, read_settings(stream), start, began=0.0)
    again = text_of(rows_again)
    found, _ = checkpoint.newest(output / "checkpoints")
    again.restore(found[1]["task"])
    if in_the_middle:
        again.load_part()
        assert (rows_again.tokens == rows.tokens).all()
        again.end_epoch()
    for step in range(4, 9):
        read_on(stream)
        count(take(again))
        again.end_epoch()
        save(output, again.state(), step)
        again.checkpoint_written()
    words = " ".join(LINES).split()
    assert counted.total() > 25_000
    assert counted == Counter(words[: counted.total()])


def test_a_folder_with_later_parts_is_not_changed(tmp_path):
    stream, output = begin_lines(tmp_path), tmp_path / "output"
    read_on(stream)
    text = text_of(StreamRows(stream, read_settings(stream), start_of(stream), began=0.0))
    take(text)
    text.end_epoch()
    save(output, text.state(), 1)
    text.checkpoint_written()
    before = {path.name: path.read_bytes() for path in stream.rglob("*") if path.is_file()}
    assert len(before) > 4
    restore_stream(output, stream)
    assert {path.name: path.read_bytes() for path in stream.rglob("*") if path.is_file()} == before


def test_without_checkpoints_nothing_is_restored_and_an_invalid_position_is_one_sentence(tmp_path, messages):
    restore_stream(tmp_path / "output", tmp_path / "stream")
    assert list(tmp_path.iterdir()) == []
    save(tmp_path, {"taken": {READER: 1}, "chosen": None}, 1)
    with messages.raises(DataError):
        restore_stream(tmp_path, tmp_path / "stream")
