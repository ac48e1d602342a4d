"""Stream rows: the choice of the next part, resuming, and reports to readers."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

from common.errors import DataError, TrainingError
from corpus.stream.part_files import reader_of
from corpus.stream.parts import ROW_TOKENS, part_path
from corpus.stream.progress import read_taken, reader_folder, write_error
from corpus.stream.stream_settings import read_settings
from tests.corpus.stream.reading import Clock, begin, parts, read
from trainer.computing.threads import Threads
from trainer.config import TrainConfig, configured
from trainer.distributed.ranks import Ranks, join_process_group
from trainer.embeddings import initial_state, stream_position, stream_rows
from trainer.embeddings.initial_state import (
    InitialState,
    await_first_parts,
    load_initial_state,
    read_initial_state,
    write_initial_state,
)
from trainer.embeddings.stream_rows import StreamRows, TextStream
from trainer.embeddings.task import SkipGramEmbedding
from trainer.output.archive import DamagedError
from trainer.output.run_files import STREAM
from trainer.task import EpochStatus

TEXT = "".join(f"word{number % 7} is one of many words that keep coming\n" for number in range(400))


def never() -> bool:
    return False


@pytest.fixture
def stream(tmp_path):
    """A stream with two finished readers, with four files and two."""
    (tmp_path / "texts").mkdir()
    places = [tmp_path / "texts" / str(number) for number in range(100)]
    for reader, files in enumerate((4, 2)):
        for place in [each for each in places if reader_of(str(each), 2) == reader][:files]:
            place.write_text(TEXT)
    made = begin(tmp_path / "stream", tmp_path / "texts", part_rows=8, readers=2, follow=True)
    settings = json.loads((made / "stream.json").read_text())
    (made / "stream.json").write_text(json.dumps({**settings, "follow": False}))
    for reader in range(2):
        read(made, reader=reader, readers=2)
    (made / "stream.json").write_text(json.dumps(settings))
    return made


ALONE = Ranks(rank=0, world_size=1, device=torch.device("cpu"), threads=Threads(1))


def rows(stream: Path) -> StreamRows:
    return StreamRows(stream, read_settings(stream), start(stream), began=0.0)


def text_of(data: StreamRows, **more: Any) -> TextStream:
    """Return the stream that puts its parts into `data`. `more`: options of the run."""
    return TextStream(data, options(data.stream, **more).options, ALONE)


def start(
    stream: Path, *, min_count: int = 1, words: int = 500, minutes: float | None = None, **more: Any
) -> InitialState:
    """Return the initial state of a run. `more`: other settings of the stream."""
    settings = replace(read_settings(stream), **more)
    found = await_first_parts(stream, settings, words=words, minutes=minutes, stop=lambda: False)
    return read_initial_state(stream, found, min_count=min_count)


def counts(stream: Path) -> list[int]:
    """Return the number of parts of each reader."""
    return [len(parts(stream, reader)) for reader in range(2)]


def learn(text: TextStream) -> tuple[str, int]:
    """Learn from the next part, and return which one it was."""
    assert text.position.choose(never, never, wait=True) is EpochStatus.READY
    text.load_part()
    chosen: tuple[str, int] = text.state()["chosen"]
    text.end_epoch()
    return chosen


def begin_part(text: TextStream) -> None:
    text.position.choose(never, never, wait=True)
    text.load_part()


@pytest.fixture
def unended(stream):
    """The stream, in which no reader has reached an end."""
    for reader in range(2):
        (stream / f"reader-{reader}" / "end.json").unlink()
    return stream


def test_every_part_is_used_once_and_readers_alternate(stream):
    text = text_of(rows(stream))
    found = [learn(text) for _ in range(sum(counts(stream)))]
    expected = [(f"reader-{reader}", number) for reader, count in enumerate(counts(stream)) for number in range(count)]
    assert sorted(found) == expected
    shorter = min(counts(stream))
    assert [name for name, _ in found[: 2 * shorter]] == ["reader-0", "reader-1"] * shorter
    assert text.position.choose(never, never, wait=True) is EpochStatus.END
    assert text.position.words_seen == 6 * len(TEXT.split())
    taken = {"reader-0": counts(stream)[0], "reader-1": counts(stream)[1]}
    assert text.position.plain() == {
        "taken": taken,
        "chosen": None,
        "words_seen": text.position.words_seen,
        "words_outside": 0,
    }


def test_a_missing_part_is_pending_until_a_stop_or_the_end_of_the_run(stream, messages):
    text = text_of(rows(stream))
    for _ in range(sum(counts(stream))):
        learn(text)
    (stream / "reader-0" / "end.json").unlink()
    assert text.position.choose(never, never, wait=False) is EpochStatus.PENDING
    asked, over = iter([False, True]), iter([False, True])
    assert text.position.choose(lambda: next(asked), never, wait=True) is EpochStatus.STOP
    assert text.position.choose(never, lambda: next(over), wait=True) is EpochStatus.END
    with patch.object(stream_position, "_MOST_SECONDS", 0.0):  # so that other ranks do not time out
        assert text.position.choose(never, never, wait=True) is EpochStatus.PENDING
    write_error(reader_folder(stream, 1), "its source is gone")
    with messages.raises(DataError):
        text.position.choose(never, never, wait=True)


def test_readers_are_informed_of_finished_parts_only(stream):
    text = text_of(rows(stream))
    for expected in ([0, 0], [1, 0], [1, 1]):
        begin_part(text)
        text.checkpoint_written()
        reported = [read_taken(stream, reader_folder(stream, reader), 99) for reader in range(2)]
        assert reported == expected
        text.end_epoch()


@pytest.mark.parametrize(
    "changes",
    [
        *({"taken": taken} for taken in ({"reader-0": 1}, {"reader-0": 1, "reader-2": 0}, None)),
        *({"chosen": chosen} for chosen in (("reader-9", 0), "reader-0")),
        *({name: None} for name in ("words_seen", "words_outside", "last")),
        {"last": {"reader-0": b"no tensor"}},
    ],
)
def test_a_position_in_another_stream_is_damage(stream, changes):
    text = text_of(rows(stream))
    with pytest.raises(DamagedError, match=r"it (contains|names) no p"):
        text.restore({**text.state(), **changes})


def test_held_out_rows_are_not_trained_on(stream):
    data = rows(stream)
    text = text_of(data)
    begin_part(text)
    assert data.held_out.any()
    assert not data.tokens[7].any()
    text.end_epoch()
    begin_part(text)
    assert data.tokens[7].any()


def test_a_part_of_another_size_is_refused(stream, messages):
    data = rows(stream)
    text = text_of(data)
    data.tokens = data.tokens[:4]
    text.position.choose(never, never, wait=True)
    with messages.raises(DataError):
        text.load_part()


def test_the_vocabulary_outlives_its_parts(stream, tmp_path):
    made = start(stream, min_count=2)
    assert load_initial_state(tmp_path / STREAM) is None
    write_initial_state(tmp_path / STREAM, made)
    found = load_initial_state(tmp_path / STREAM)
    assert found.vocabulary.words == made.vocabulary.words
    assert (found.held_of, found.part_words) == (made.held_of, made.part_words)
    np.testing.assert_array_equal(found.held_out, made.held_out)
    whole = (tmp_path / STREAM).read_bytes()
    for damaged in (b"", b"no archive", whole[: len(whole) // 2]):
        (tmp_path / STREAM).write_bytes(damaged)
        with pytest.raises(TrainingError, match="is not the file"):
            load_initial_state(tmp_path / STREAM)


def test_the_vocabulary_is_limited_to_the_parts_that_readers_read_ahead(unended):
    limited = start(unended, words=1 << 40, ahead=max(counts(unended)) - 1)
    assert limited.vocabulary.counts.sum() == 6 * len(TEXT.split())


def test_text_without_frequent_words_is_one_sentence(stream, messages):
    with messages.raises(TrainingError):
        start(stream, min_count=100_000)


@pytest.fixture
def clock(monkeypatch):
    """The clock by which a run waits for its vocabulary."""
    made = Clock()
    for module in (initial_state, stream_rows):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=made, sleep=made.sleep))
    return made


def test_the_vocabulary_waits_at_most_half_of_the_minutes(unended, clock):
    assert start(unended, words=1 << 40, minutes=3).vocabulary.counts.sum() > 0
    assert clock.now == pytest.approx(90, abs=0.5)


def test_a_run_ends_after_its_minutes(unended, clock):
    text = text_of(rows(unended), minutes=2.0)
    for minutes, ended in ((1.9, False), (0.2, True)):
        clock.sleep(60 * minutes)
        assert text.has_reached_end() is ended


def test_a_source_without_text_within_the_minutes_is_one_sentence(stream, clock, messages):
    for reader in range(2):
        shutil.rmtree(stream / f"reader-{reader}")
    with messages.raises(TrainingError):
        start(stream, minutes=3)
    assert clock.now == pytest.approx(180, abs=0.5)


def test_a_stopped_run_and_removed_first_parts_are_one_sentence(stream, messages):
    with messages.raises(TrainingError):
        await_first_parts(stream, read_settings(stream), words=500, minutes=None, stop=lambda: True)
    for reader in range(2):
        part_path(stream / f"reader-{reader}", 0).unlink()
    with messages.raises(DataError):
        start(stream)


@pytest.fixture
def alone():
    with join_process_group(1) as ranks:
        yield ranks


def options(stream: Path, **more: Any) -> TrainConfig:
    given = {"data": stream, "output": stream / "out", "model": "skipgram", "embedding": 4, "min_count": 1, **more}
    return configured(given, endless=True)


def task(ranks: Ranks, config: TrainConfig) -> SkipGramEmbedding:
    data = SkipGramEmbedding.load(config, ranks, memory=1 << 30, stop=never)
    config, data, _ = SkipGramEmbedding.resolve_config(config, ranks, data)
    return SkipGramEmbedding(config, ranks, data)


def test_the_rate_decays_with_the_words_and_the_run_ends_after_them(stream, alone):
    words, rates = 3 * len(TEXT.split()), list[float]()
    config = options(stream, words=words, epochs=1000)
    own = task(alone, config)
    assert own.stream is not None
    while own.stream.begin_epoch(never, wait=False) is EpochStatus.READY:
        rates += [own.step_rate(config.optimisation, step, 4 * 1000, 1) for step in range(4)]
        own.stream.end_epoch()
    reported = own.summary_settings()
    assert words <= reported["words_seen"] < words + 8 * ROW_TOKENS
    assert rates == pytest.approx(np.linspace(rates[0], 0, len(rates), endpoint=False), abs=0.1 * rates[0])
    assert rates == sorted(set(rates), reverse=True)  # also within a part
    assert rates[-1] > 0  # although the last part has more words than asked for
    assert reported["words_a_row"] == pytest.approx(2 * words / (8 * sum(counts(stream))), rel=0.05)


def test_only_a_resumed_run_keeps_the_vocabulary(stream, alone):
    config = options(stream)
    frequent = task(alone, config.changed(min_count=1000))
    found = [task(alone, replace(config, resume=resume)) for resume in (True, False)]
    assert [own.summary_settings()["vocabulary"] for own in (frequent, *found)] == [8, 8, 15]
