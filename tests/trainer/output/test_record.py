"""Record: JSON lines are appended, and an incomplete line does no harm."""

import json
import shutil
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from trainer.output.lines import Note
from trainer.output.reporter import Record, Reporter, StepSampling, print_notice


@pytest.mark.parametrize(("fresh", "kept"), [(False, ['{"kind": "start"}', '{"kind": "st']), (True, [])])
def test_a_line_is_visible_immediately_after_those_of_the_resumed_run(tmp_path, fresh, kept):
    path = tmp_path / "r"
    path.write_text('{"kind": "start"}\n{"kind": "st')
    with Record(path, fresh=fresh) as record:
        record.write(Note(text="again"))
        *before, last = path.read_text().splitlines()
    assert before == kept
    assert json.loads(last)["text"] == "again"


def test_an_unwritable_notice_does_not_end_the_run(monkeypatch):
    with Path("/dev/full").open("w", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        print_notice("a sentence")
        with Record(Path("/dev/full"), fresh=True) as record:
            record.write(Note(text="lost"))
        monkeypatch.undo()
        with suppress(OSError):
            full.close()  # its buffer still contains the lost text


def test_a_full_disk_is_reported_once_and_does_not_end_the_run_and_other_ranks_report_nothing(capsys):
    with Record(Path("/dev/full"), fresh=True) as record:
        record.write(Note(text="lost"))
        record.write(Note(text="lost"))
    with Record(None, fresh=True) as record:  # on other ranks
        record.write(Note(text="lost"))
    assert capsys.readouterr().err.count("cannot write /dev/full: No space left on device") == 1


@pytest.mark.parametrize("how", ["removed", "moved", "replaced", "kept"])
def test_a_record_notices_that_its_folder_is_missing(tmp_path, how):
    output = tmp_path / "run"
    output.mkdir()
    with Record(output / "r", fresh=True) as record:
        if how == "removed":
            shutil.rmtree(output)
        elif how != "kept":
            output.rename(tmp_path / "moved")
        if how == "replaced":
            output.mkdir()
            (output / "r").touch()
        assert record.missing == (how != "kept")


@pytest.mark.parametrize(
    ("every", "seconds_a_step", "steps", "first", "taken"),
    [
        (10, 0.25, 35, 0, [0, 10, 20, 30, 34]),
        (10, 2.0, 20, 0, [0, 3, 6, 9, 10, 13, 16, 19]),
        (10, 60.0, 4, 0, [0, 1, 2, 3]),
        (10, 0.01, 143, 0, [0, 50, 100, 142]),
        (10, 0.25, 42, 17, [17, 20, 30, 40, 41]),  # a resumed run
        (1, 0.001, 9, 0, list(range(9))),
    ],
)
def test_steps_are_sampled_by_number_and_by_time(every, seconds_a_step, steps, first, taken):
    takes, last = StepSampling(every).takes, steps - 1
    assert taken == [
        step for step in range(first, steps) if takes(step, last=step == last, now=1000 + step * seconds_a_step)
    ]


def test_pieces_are_noted_only_when_they_change_and_different_weights_only_once(tmp_path, messages):
    ranks = SimpleNamespace(
        rank=0, world_size=2, is_first=True, gather=lambda name: [name, "rank 1"], agreement=nullcontext
    )
    config = SimpleNamespace(output=tmp_path, record_every=10)
    throughput = SimpleNamespace(rows_per_second=4.0, balanced=1.0)
    with Reporter(config, ranks, rows=20, seen=0, fresh=True) as reporter:
        for step, pieces in enumerate([[0, 0], [0, 8], [0, 8], [0, 1], [0, 1]]):
            report = SimpleNamespace(
                step=step, loss=0.5, rows=np.array([2, 2]), seconds=np.ones(2), pieces=np.array(pieces)
            )
            reporter.step(report, throughput, epoch=1, last=False)
        for most in (None, 1e-3, None, 2e-3):
            reporter.weights_synchronised(most)
    written = [json.loads(line) for line in (tmp_path / "record.jsonl").read_text().splitlines()]
    texts = [line["text"] for line in written if line["kind"] == "note"]
    assert len(texts) == 3
    for text in texts:
        messages.check(text)
