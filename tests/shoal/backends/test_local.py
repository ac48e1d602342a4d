"""Tests of training on this machine: errors of ranks, refused outputs, summaries."""

import json
from contextlib import nullcontext
from dataclasses import replace
from unittest.mock import Mock

import pytest

from bootstrap.node.folder import Folder
from common.errors import ShoalError, TrainingError
from corpus.stream.progress import Status
from shoal.backends import local
from shoal.config_file import read_config, write_config
from shoal.runs.run_view import RecordView, RunView
from tests.shoal.backends.on_nodes import made_dataset
from trainer.config import configured
from trainer.distributed.failures import Failure, FailureKind
from trainer.output.run_files import require_free_output
from trainer.output.summary import read_summary
from trainer.rank_processes import failure_in

STEP_7 = {"where": "at step 7", "then": "; continue"}
BROKEN = Failure(kind=FailureKind.CAUSE, time=50.0, what="rank 3 on i-2 failed with KeyError ('x')", **STEP_7)
LOST = Failure(kind=FailureKind.CONSEQUENCE, time=49.0, what="rank 0 lost the other ranks", **STEP_7)
LATER = Failure(kind=FailureKind.CONSEQUENCE, time=90.0, what="rank 0 lost other ranks", where="at step 90", attempt=1)
AGREED = Failure(kind=FailureKind.FINAL, time=51.0, what="x.h5 is not an HDF5 file; make it again")


def output(*lines):
    return "\n".join(line if isinstance(line, str) else line.line() for line in lines)


PRINTED = {
    "a cause after its consequence": (output("Traceback", LOST, "more", BROKEN), BROKEN.what),
    "a cause before its consequence": (output(BROKEN, LOST), BROKEN.what),
    "a cause and a restart": (output(BROKEN, LATER), LATER.what),
    "a consequence": (output(LOST), LOST.what),
    "a final failure": (output("trainer: x", LOST, BROKEN, AGREED), AGREED.what),
    "an invalid failure": (output('failed: {"kind": "cause", "time": "now", "what": "x"}', BROKEN), BROKEN.what),
    "a sentence before half a line": (output("trainer: x is y; do z", LOST.line()[:50]), "x is y; do z"),
    "a sentence of a rank": ("[rank 1] x\n[rank 0] trainer: x is y; do z\n", "x is y; do z"),
    "an error of a rank": ("[rank 1] ImportError: no torch\n", "ImportError: no torch"),
    "an error before other lines": ("one\nImportError: no torch\n===\n", "ImportError: no torch"),
}


@pytest.mark.parametrize(("printed", "failure"), PRINTED.values(), ids=PRINTED)
def test_the_first_failure_is_reported(printed, failure, messages):
    error = failure_in(printed, "the logs are in out")
    assert isinstance(error, TrainingError)
    assert failure in str(error)
    messages.check(error)


def train_here(config, ranks):
    """Train on this machine. The import takes long."""
    from benchmarks.ranks import train_here

    return train_here(config, ranks=ranks)


FILES = {"record.jsonl": '{"kind": "end", "stopped": true}\n', "summary.json": '{"stopped": true}', "train.log": "said"}
STOPPED = {**FILES, "checkpoints/step-000000001.pt": "a state"}
FINISHED_FILES = {**FILES, "summary.json": '{"stopped": false}', "model/config.json": "{}"}


@pytest.mark.parametrize(
    ("files", "resume"),
    [
        pytest.param(STOPPED, False, id="stopped"),
        pytest.param(FINISHED_FILES, False, id="finished"),
        pytest.param(FINISHED_FILES, True, id="resumed"),
    ],
)
def test_a_new_run_does_not_change_a_stopped_or_finished_one(tmp_path, files, resume, messages):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    config = configured({"model": "lstm", "data": tmp_path / "d.h5", "output": tmp_path, "resume": resume})
    with nullcontext() if resume else messages.raises(TrainingError):
        assert train_here(config, ranks=1) == {"stopped": False, "finished_before": True}
    assert {name: (tmp_path / name).read_text() for name in files} == files


SUMMARY = {
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
MEASURES = ("accuracy", "balanced_accuracy", "macro_f1", "majority")
OF_ANY_CLASSES = dict.fromkeys((*MEASURES, "log_loss", "uncalibrated_log_loss", "temperature", "threshold"), 0.5)
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
        ([], "JSON"),
        ({}, "stopped"),
        ({**SUMMARY, "rows": "1"}, "rows"),
        ({**SUMMARY, "stopped": False}, "accuracy"),
        ({**FINISHED, "threshold": None}, "threshold"),
        ({**FINISHED, "f1_negative": None}, "f1_negative"),
        ({**FINISHED, "confusion": None}, "confusion"),
        ({**FINISHED, "confusion": {**TWO, "classes": ["bad", "fair", "good"]}}, "confusion"),
        ({**FINISHED, "confusion": {**TWO, "counts": [[3, 1], [0]]}}, "confusion"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_invalid_summary_is_refused_with_its_file(tmp_path, content, wrong, messages):
    (tmp_path / "summary.json").write_text(json.dumps(content))
    with messages.raises(ShoalError) as refusal:
        read_summary(tmp_path)
    assert wrong in str(refusal.value)


@pytest.fixture
def config(tmp_path):
    """Return the configuration of a run of some seconds."""
    return configured(
        {
            "model": "lstm",
            "data": made_dataset(tmp_path / "dataset.h5"),
            "output": tmp_path / "out",
            "epochs": 4,
            "global_batch": 64,
            "slow": {0: 12.0, 1: 12.0},
            "checkpoint_minutes": 0.004,
            "threads": 1,
        }
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
    with pytest.raises(TrainingError, match="--slow names rank 3"):
        train_here(refused, ranks=2)
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

    RecordView(RunView(read=read), Folder(tmp_path), "record.jsonl", before=None).update()
    assert asked


def test_a_forced_run_replaces_a_finished_one_with_its_checkpoints(config, monkeypatch):
    for name, content in {**FINISHED_FILES, "checkpoints/step-000000001.pt": "a state"}.items():
        (config.output / name).parent.mkdir(parents=True, exist_ok=True)
        (config.output / name).write_text(content)

    def start_ranks(new, **_):
        require_free_output(new.output, force=new.force)
        raise TrainingError("the ranks start")

    monkeypatch.setattr(local, "start_ranks", start_ranks)
    with pytest.raises(TrainingError, match="the ranks start"):
        train_here(replace(config, force=True), ranks=1)


@pytest.mark.parametrize(
    ("summary", "status", "outcome"),
    [({"stopped": True}, 0, "stopped"), ({"stopped": True}, 1, "failed"), ({"stopped": False}, 0, "finished")],
)
def test_ranks_that_another_process_stopped_are_stopped_and_not_failed(summary, status, outcome, tmp_path, monkeypatch):
    backend = local.LocalBackend()
    backend._process, backend._output = Mock(poll=lambda: status), tmp_path
    monkeypatch.setattr(local, "read_summary", lambda _: summary)
    assert backend.state("").outcome == outcome
