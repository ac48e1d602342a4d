"""What the launcher of a training makes of its ranks' output, when they failed or one was lost."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.trained import train_here
from bootstrap.config_file import read_config, write_config
from bootstrap.progress import Bars
from bootstrap.training.places.this_machine import show_record
from bootstrap.training.run_view import RunView
from common.errors import ShoalError, TrainingError
from corpus.dataset import RowBlock, write_dataset
from corpus.dataset_settings import Settings
from corpus.stream.progress import Status
from experiments.records.summaries import read_summary
from trainer.config import TrainConfig
from trainer.distributed.failures import Failure, FailureKind
from trainer.options.run_options import Slowdown
from trainer.rank_processes import failure_in

WHERE = "the logs are in out"
BROKEN = Failure(
    kind=FailureKind.CAUSE, time=50.0, what="rank 3 on i-2 failed by KeyError ('x')", where="at step 7", then="; go on"
)
LOST = Failure(
    kind=FailureKind.CONSEQUENCE,
    time=49.0,
    what="rank 0 lost the other ranks",
    where="at step 7",
    then=" (gone); go on",
)
AGREED = Failure(kind=FailureKind.FINAL, time=51.0, what="x.h5 is not an HDF5 file; make it anew")


def output(*lines: Failure | str) -> str:
    return "\n".join(line if isinstance(line, str) else line.line() for line in lines)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            output("Traceback", LOST, "more", BROKEN),
            f"rank 3 on i-2 failed by KeyError ('x') at step 7; go on; {WHERE}",
        ),
        (output(BROKEN, LOST), f"rank 3 on i-2 failed by KeyError ('x') at step 7; go on; {WHERE}"),
        (output(LOST), f"rank 0 lost the other ranks at step 7 (gone); go on; {WHERE}"),
        (output("trainer: x", LOST, BROKEN, AGREED), "x.h5 is not an HDF5 file; make it anew"),
        (output("trainer: x is y; do z", LOST.line()[:50]), "x is y; do z"),
        (
            output('failed: {"kind": "cause", "time": "now", "what": "x"}', BROKEN),
            f"rank 3 on i-2 failed by KeyError ('x') at step 7; go on; {WHERE}",
        ),
    ],
    ids=["consequence first", "cause first", "nothing better", "would come again", "half a line", "no time"],
)
def test_the_first_failure_is_reported(said: str, sentence: str) -> None:
    found = failure_in(said, WHERE)
    assert isinstance(found, TrainingError)
    assert str(found) == sentence


def test_after_a_restart_of_the_ranks_the_last_failure_is_reported() -> None:
    again = Failure(
        kind=FailureKind.CONSEQUENCE, time=90.0, what="rank 0 lost the other ranks", where="at step 90", attempt=1
    )
    assert str(failure_in(output(BROKEN, again), WHERE)) == f"rank 0 lost the other ranks at step 90; {WHERE}"


def test_a_stopped_run_is_not_changed_by_a_new_one(tmp_path: Path) -> None:
    files = {
        "checkpoints/step-000000001.pt": "a state",
        "record.jsonl": '{"kind": "end", "stopped": true}\n',
        "summary.json": '{"stopped": true}',
        "train.log": "what it said",
    }
    (tmp_path / "checkpoints").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(TrainingError, match="of a run that has not ended; continue with --resume"), Bars() as bars:
        train_here(TrainConfig(data=tmp_path / "d.h5", output=tmp_path), ranks=1, bars=bars)
    assert {name: (tmp_path / name).read_text() for name in files} == files


def finished(folder: Path) -> dict[str, str]:
    """The files of a run that came to its end."""
    files = {
        "model/config.json": "{}",
        "record.jsonl": "{}\n",
        "summary.json": '{"stopped": false}',
        "train.log": "said",
    }
    (folder / "model").mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)
    return files


def test_without_force_a_finished_model_is_not_replaced(tmp_path: Path) -> None:
    files = finished(tmp_path)
    with pytest.raises(TrainingError, match=r"model is a finished model; add --force"), Bars() as bars:
        train_here(TrainConfig(data=tmp_path / "d.h5", output=tmp_path), ranks=1, bars=bars)
    assert {name: (tmp_path / name).read_text() for name in files} == files


def test_a_finished_run_is_not_continued(tmp_path: Path) -> None:
    files = finished(tmp_path)
    with Bars() as bars:
        found = train_here(TrainConfig(data=tmp_path / "d.h5", output=tmp_path, resume=True), ranks=1, bars=bars)
    assert found == {"stopped": False, "finished_before": True}
    assert {name: (tmp_path / name).read_text() for name in files} == files


def test_the_sentence_of_a_rank_is_known_after_its_name() -> None:
    assert str(failure_in("[rank 1] x\n[rank 0] trainer: x is y; do z\n", WHERE)) == "x is y; do z"
    found = str(failure_in("[rank 1] ImportError: no torch\n", WHERE))
    assert found == f"the training ended without a result: ImportError: no torch; {WHERE}"


def test_output_without_a_failure_is_reported_by_its_last_line() -> None:
    found = failure_in("one\nImportError: no torch\n=====\n", WHERE)
    assert isinstance(found, TrainingError)
    assert str(found) == f"the training ended without a result: ImportError: no torch; {WHERE}"


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


def test_a_stopped_run_has_no_measures(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text(json.dumps(SUMMARY))
    assert read_summary(tmp_path) == SUMMARY


def test_a_finished_run_has_the_measures_of_its_classes(tmp_path: Path) -> None:
    three = {"classes": ["bad", "fair", "good"], "counts": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}
    for finished in (FINISHED, {**SUMMARY, "stopped": False, **OF_ANY_CLASSES, "confusion": three}):
        (tmp_path / "summary.json").write_text(json.dumps(finished))
        assert read_summary(tmp_path) == finished


def test_a_summary_of_an_earlier_version_is_read_with_what_is_no_longer_written(tmp_path: Path) -> None:
    older = {**FINISHED, "rows_claimed": [0], "profile": [{"order": 0.1, "claim": 0.1}]}
    (tmp_path / "summary.json").write_text(json.dumps(older))
    assert read_summary(tmp_path) == older


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {},
        [[3, 1], [0, 4]],
        {**TWO, "classes": ["negative", 1]},
        {**TWO, "classes": ["bad", "fair", "good"]},
        {**TWO, "counts": [[3, 1]]},
        {**TWO, "counts": [[3, 1], [0]]},
        {**TWO, "counts": [[3, 1], [0, 4.5]]},
        {"classes": [], "counts": []},
    ],
)
def test_a_summary_with_a_confusion_matrix_that_is_none_is_refused(tmp_path: Path, wrong: Any) -> None:
    (tmp_path / "summary.json").write_text(json.dumps({**FINISHED, "confusion": wrong}))
    with pytest.raises(ShoalError, match="'confusion' is missing or of a wrong type"):
        read_summary(tmp_path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[]", "it is no JSON object"),
        ("[" * 200_000, "it is no JSON object"),
        ("{", "it is no JSON object"),
        ("{}", "'stopped' is missing or of a wrong type"),
        *(
            (json.dumps({**SUMMARY, name: value}), f"'{name}' is missing or of a wrong type")
            for name, value in {
                "rows": "1",
                "rows_of_ranks": 1,
                "lost": {},
                "profile": [1],
                "seconds": True,
                "share_of_ideal": "all",
                "balanced": "all",
                "times": {"training": "1"},
            }.items()
        ),
        (json.dumps({**SUMMARY, "stopped": False}), "'accuracy' is missing or of a wrong type"),
        (json.dumps({**FINISHED, "threshold": None}), "'threshold' is missing or of a wrong type"),
        (json.dumps({**FINISHED, "f1_negative": None}), "'f1_negative' is missing or of a wrong type"),
    ],
)
def test_a_summary_that_no_training_wrote_is_refused_with_its_file(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "summary.json").write_text(content)
    with pytest.raises(ShoalError, match=rf"summary\.json is not the summary of a training: {reason}; look into"):
        read_summary(tmp_path)


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    """One whose run takes some seconds."""
    generator = np.random.default_rng(0)
    labels = (generator.random(2000) < 0.5).astype(np.uint8)
    tokens = (2 + 10 * labels[:, None] + generator.integers(0, 10, (2000, 10))).astype(np.uint16)
    rows = RowBlock(tokens, np.full(2000, 10, np.uint16), labels, labels * 4 + 1)
    write_dataset(
        tmp_path / "dataset.h5",
        train=rows,
        test=rows,
        vocabulary=[f"word{letter}" for letter in "abcdefghijklmnopqrst"],
        settings=Settings(row_length=10, vocabulary_size=20),
    )
    return TrainConfig(
        data=tmp_path / "dataset.h5",
        output=tmp_path / "out",
        epochs=4,
        global_batch=64,
        slow={0: Slowdown(12.0), 1: Slowdown(12.0)},
        checkpoint_minutes=0.004,
        record_every=1,
        threads=1,
    )


def test_an_error_of_all_ranks_is_reported_once_and_no_code_comes_from_the_current_folder(
    config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, ran = tmp_path / "downloaded", tmp_path / "ran"
    folder.mkdir()
    for name in ("trainer", "torch", "numpy"):
        (folder / f"{name}.py").write_text(f"open({str(ran)!r}, 'a').write('{name} ')\nraise SystemExit(1)\n")
    monkeypatch.chdir(folder)
    refused = replace(config, slow={3: Slowdown(2.0)}, resume=True)
    config.output.mkdir()
    write_config(config.output / "config.yaml", "train", {"cache": ("there",), "force": (), "seed": ("7",)})
    with pytest.raises(TrainingError, match="--slow names rank 3"), Bars() as bars:
        train_here(refused, ranks=2, bars=bars)
    assert (config.output / "train.log").read_text().count("trainer: ") == 1
    kept = {name: entry.words for name, entry in read_config(config.output / "config.yaml")[1].items()}
    assert (kept["cache"], kept["seed"], kept["nodes"], kept["slow"]) == (("there",), ("0",), ("2",), ("3:2.0",))
    assert kept.keys().isdisjoint({"resume", "force"})
    assert not ran.exists(), ran.read_text()


def test_the_words_that_have_come_are_shown_also_before_there_is_a_record(tmp_path: Path) -> None:
    asked = []

    def read() -> Status:
        asked.append(True)
        return Status(words=6)

    with Bars() as bars:
        show_record(tmp_path / "record.jsonl", 0.0, RunView(bars, read=read))
    assert asked
