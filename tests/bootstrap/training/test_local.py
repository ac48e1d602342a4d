"""Tests of training on this machine: errors of ranks, refused outputs, summaries."""

import json
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.ranks import train_here
from bootstrap.agent.folder import Folder
from bootstrap.config_file import read_config, write_config
from bootstrap.progress import Bars
from bootstrap.training.places import local
from bootstrap.training.run_view import RecordView, RunView
from common.errors import ShoalError, TrainingError
from corpus.dataset import write_dataset
from corpus.dataset_settings import Settings
from corpus.stream.progress import Status
from experiments.records.summaries import read_summary
from tests.bootstrap.training.on_nodes import rows
from trainer.config import TrainConfig
from trainer.distributed.failures import Failure, FailureKind
from trainer.output.run_files import require_free_output
from trainer.rank_processes import failure_in

WHERE = "the logs are in out"
BROKEN = Failure(
    kind=FailureKind.CAUSE,
    time=50.0,
    what="rank 3 on i-2 failed with KeyError ('x')",
    where="at step 7",
    then="; continue",
)
LOST = Failure(
    kind=FailureKind.CONSEQUENCE,
    time=49.0,
    what="rank 0 lost the other ranks",
    where="at step 7",
    then=" (gone); continue",
)
LATER = Failure(
    kind=FailureKind.CONSEQUENCE, time=90.0, what="rank 0 lost the other ranks", where="at step 90", attempt=1
)
AGREED = Failure(kind=FailureKind.FINAL, time=51.0, what="x.h5 is not an HDF5 file; make it again")


def output(*lines: Failure | str) -> str:
    return "\n".join(line if isinstance(line, str) else line.line() for line in lines)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            output("Traceback", LOST, "more", BROKEN),
            f"rank 3 on i-2 failed with KeyError ('x') at step 7; continue; {WHERE}",
        ),
        (output(BROKEN, LOST), f"rank 3 on i-2 failed with KeyError ('x') at step 7; continue; {WHERE}"),
        (output(BROKEN, LATER), f"rank 0 lost the other ranks at step 90; {WHERE}"),  # after a restart
        (output(LOST), f"rank 0 lost the other ranks at step 7 (gone); continue; {WHERE}"),
        (output("trainer: x", LOST, BROKEN, AGREED), "x.h5 is not an HDF5 file; make it again"),
        (output("trainer: x is y; do z", LOST.line()[:50]), "x is y; do z"),
        ("[rank 1] x\n[rank 0] trainer: x is y; do z\n", "x is y; do z"),
        ("[rank 1] ImportError: no torch\n", f"the training ended without a result: ImportError: no torch; {WHERE}"),
        ("one\nImportError: no torch\n===\n", f"the training ended without a result: ImportError: no torch; {WHERE}"),
        (
            output('failed: {"kind": "cause", "time": "now", "what": "x"}', BROKEN),
            f"rank 3 on i-2 failed with KeyError ('x') at step 7; continue; {WHERE}",
        ),
    ],
)
def test_the_first_failure_is_reported(said, sentence):
    found = failure_in(said, WHERE)
    assert isinstance(found, TrainingError)
    assert str(found) == sentence


FILES = {"record.jsonl": '{"kind": "end", "stopped": true}\n', "summary.json": '{"stopped": true}', "train.log": "said"}
STOPPED = {**FILES, "checkpoints/step-000000001.pt": "a state"}
FINISHED_FILES = {**FILES, "summary.json": '{"stopped": false}', "model/config.json": "{}"}


@pytest.mark.parametrize(
    ("files", "resume", "refused"),
    [
        (STOPPED, False, "of a run that has not ended; continue with --resume"),
        (FINISHED_FILES, False, "model is a finished model; add --force"),
        (FINISHED_FILES, True, ""),
    ],
)
def test_a_new_run_does_not_change_a_stopped_or_finished_one(tmp_path, files, resume, refused):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    config = TrainConfig(data=tmp_path / "d.h5", output=tmp_path, resume=resume)
    with Bars() as bars, pytest.raises(TrainingError, match=refused) if refused else nullcontext():
        assert train_here(config, ranks=1, bars=bars) == {"stopped": False, "finished_before": True}
    assert {name: (tmp_path / name).read_text() for name in files} == files


SUMMARY: dict[str, Any] = {
    "stopped": True,
    **dict.fromkeys(("rows", "rows_seen", "epochs", "world_size", "seconds"), 1),
    "samples_per_second": 1.5,
    "rows_of_ranks": [1],
    "share_of_ideal": None,
    "balanced": None,
    "lost": None,
    "times": {"training": 1.0},
    "wall": 1.0,
    "profile": [{"order": 0.1}],
    **dict.fromkeys(("accuracy", "balanced_accuracy", "macro_f1", "majority", "confusion")),
}
OF_ANY_CLASSES = dict.fromkeys(
    (
        *("accuracy", "balanced_accuracy", "macro_f1", "majority"),
        *("log_loss", "uncalibrated_log_loss", "temperature", "threshold"),
    ),
    0.5,
)
TWO = {"classes": ["negative", "positive"], "counts": [[3, 1], [0, 4]]}
FINISHED = {**SUMMARY, "stopped": False, **OF_ANY_CLASSES, "confusion": TWO, "f1_positive": 0.5, "f1_negative": 0.5}


THREE = {"classes": ["bad", "fair", "good"], "counts": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}


@pytest.mark.parametrize(
    "content",
    [
        SUMMARY,
        FINISHED,
        {**SUMMARY, "stopped": False, **OF_ANY_CLASSES, "confusion": THREE},
        {**FINISHED, "rows_claimed": [0], "profile": [{"order": 0.1, "claim": 0.1}]},  # of an earlier version
    ],
)
def test_a_summary_has_the_measures_of_its_classes_once_it_is_finished(content, tmp_path):
    (tmp_path / "summary.json").write_text(json.dumps(content))
    assert read_summary(tmp_path) == content


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("[]", None),
        ("{}", "stopped"),
        ({**SUMMARY, "rows": "1"}, "rows"),
        ({**SUMMARY, "stopped": False}, "accuracy"),
        ({**FINISHED, "threshold": None}, "threshold"),
        ({**FINISHED, "f1_negative": None}, "f1_negative"),
        *(
            ({**FINISHED, "confusion": confusion}, "confusion")
            for confusion in (None, {**TWO, "classes": ["bad", "fair", "good"]}, {**TWO, "counts": [[3, 1], [0]]})
        ),
    ],
)
def test_an_invalid_summary_is_refused_with_its_file(tmp_path, content, wrong):
    (tmp_path / "summary.json").write_text(content if isinstance(content, str) else json.dumps(content))
    reason = f"'{wrong}' is missing or has a wrong type" if wrong else "it is not a JSON object"
    with pytest.raises(ShoalError, match=rf"is not the summary of a training run: {reason}; check the logs"):
        read_summary(tmp_path)


@pytest.fixture
def config(tmp_path) -> TrainConfig:
    """Return the configuration of a run of some seconds."""
    write_dataset(
        tmp_path / "dataset.h5",
        train=rows(2000),
        test=rows(2000),
        vocabulary=[f"word{letter}" for letter in "abcdefghijklmnopqrst"],
        settings=Settings(row_length=10, vocabulary_size=20),
    )
    return TrainConfig(
        data=tmp_path / "dataset.h5",
        output=tmp_path / "out",
        epochs=4,
        global_batch=64,
        slow={0: 12.0, 1: 12.0},
        checkpoint_minutes=0.004,
        record_every=1,
        threads=1,
    )


def test_an_error_of_all_ranks_is_reported_once_and_no_code_comes_from_the_current_folder(
    config, tmp_path, monkeypatch
):
    folder, ran = tmp_path / "downloaded", tmp_path / "ran"
    folder.mkdir()
    for name in ("trainer", "torch", "numpy"):
        (folder / f"{name}.py").write_text(f"open({str(ran)!r}, 'a').write('{name} ')\nraise SystemExit(1)\n")
    monkeypatch.chdir(folder)
    refused = replace(config, slow={3: 2.0}, resume=True)
    config.output.mkdir()
    write_config(config.output / "config.yaml", "train", {"cache": ("there",), "force": (), "seed": ("7",)})
    with pytest.raises(TrainingError, match="--slow names rank 3"), Bars() as bars:
        train_here(refused, ranks=2, bars=bars)
    assert (config.output / "train.log").read_text().count("trainer: ") == 1
    kept = {name: entry.words for name, entry in read_config(config.output / "config.yaml")[1].items()}
    assert (kept["cache"], kept["seed"], kept["nodes"], kept["slow"]) == (("there",), ("0",), ("2",), ("3:2.0",))
    assert kept.keys().isdisjoint({"resume", "force"})
    assert not ran.exists(), ran.read_text()


def test_the_words_read_are_shown_before_the_record_exists(tmp_path):
    asked = []

    def read():
        asked.append(True)
        return Status(words=6)

    with Bars() as bars:
        RecordView(RunView(bars, read=read), Folder(tmp_path), "record.jsonl", before=None).update()
    assert asked


def test_a_forced_run_replaces_a_finished_one_with_its_checkpoints(config, monkeypatch):
    for name, content in {**FINISHED_FILES, "checkpoints/step-000000001.pt": "a state"}.items():
        (config.output / name).parent.mkdir(parents=True, exist_ok=True)
        (config.output / name).write_text(content)

    def start_ranks(given, **_):
        require_free_output(given.output, force=given.force)
        raise TrainingError("the ranks start")

    monkeypatch.setattr(local, "start_ranks", start_ranks)
    with Bars() as bars, pytest.raises(TrainingError, match="the ranks start"):
        train_here(replace(config, force=True), ranks=1, bars=bars)
