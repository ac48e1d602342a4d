"""Records to TensorBoard's event files, read back."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bootstrap.training.tensorboard import TensorBoardWriter
from tests.events import events, points, read
from trainer.output.lines import Line, parse_line

MEASURES = {"loss": 0.25, "accuracy": 0.875}


def start(from_step: int = 0, **config: object) -> dict:
    return {
        "kind": "start",
        "time": 1.5e9,
        "epochs": 2,
        "config": {"epochs": None, "model": "lstm", "slow": {"1": "2.0"}, "cache": None, **config},
        "world_size": 2,
        "devices": ["A10G", "T4"],
        "rows": {"training": 128},
        "digest": "1",
        "global_batch": 32,
        "steps": 8,
        "from_step": from_step,
        "own_rates": [300.0, 100.0],
    }


def step(number: int, loss: float = 0.5, *, rate: float | None = 340.0) -> dict:
    made = {"kind": "step", "time": 1.5e9 + number, "epoch": 1 + (number - 1) // 4, "step": number, "loss": loss}
    return {**made, "split": [20, 12], "rows_per_second": rate, "balanced": 0.75, "compute_seconds": [0.25, 0.5]}


def epoch(number: int) -> dict:
    told = {"kind": "epoch", "time": 1.5e9, "epoch": number, "loss": 0.75}
    return {**told, "validation": {**MEASURES, "accuracy": number / 4}}


def judged(number: int) -> dict:
    confusion = {"classes": ["negative", "positive"], "counts": [[3, 1], [0, 4]]}
    return {"kind": "test", "time": 1.5e9, "epoch": number, **MEASURES, "confusion": confusion}


END = {"kind": "end", "time": 1.5e9, "stopped": False}


def parsed(line: dict) -> Line:
    found = parse_line(json.dumps(line).encode())
    assert found is not None
    return found


def write(folder: Path, *lines: dict) -> None:
    with TensorBoardWriter(folder) as board:
        for line in lines:
            board.take(parsed(line))


def test_every_figure_of_the_record_is_a_curve(tmp_path: Path) -> None:
    write(tmp_path, start(), step(1), step(4, loss=0.25), epoch(1), judged(1), END)
    assert points(tmp_path) == {
        "training/loss": [(1, 0.5), (4, 0.25)],
        "speed/rows_per_second": [(1, 340.0), (4, 340.0)],
        "speed/share_of_ideal": [(1, pytest.approx(0.85)), (4, pytest.approx(0.85))],
        "speed/balanced": [(1, 0.75), (4, 0.75)],
        "split/rank_0": [(1, 20.0), (4, 20.0)],
        "split/rank_1": [(1, 12.0), (4, 12.0)],
        "compute_seconds/rank_0": [(1, 0.25), (4, 0.25)],
        "compute_seconds/rank_1": [(1, 0.5), (4, 0.5)],
        "training/loss_of_epoch": [(4, 0.75)],
        "validation/loss": [(4, 0.25)],
        "validation/accuracy": [(4, 0.25)],
        "test/loss": [(4, 0.25)],
        "test/accuracy": [(4, 0.875)],
    }


def test_waiting_for_text_and_each_measure_of_words_are_curves(tmp_path: Path) -> None:
    waits = [{"kind": "waiting", "time": 1.5e9, "step": 4, "seconds": seconds} for seconds in (0.0, 2.5)]
    measures = {"loss": 2.0, "similarity_men": 0.5, "similarity_rare": None, "analogy_google_add": 0.25}
    judged_words = {**epoch(1), "validation": {**measures, "pip_loss": 0.75}}
    write(tmp_path, start(), step(4), *waits, judged_words)
    found = points(tmp_path)
    assert found["speed/seconds_without_text"] == [(4, 2.5)]
    assert found["validation/similarity_men"] == [(4, 0.5)]
    assert found["validation/analogy_google_add"] == [(4, 0.25)]
    assert found["validation/pip_loss"] == [(4, 0.75)]
    assert "validation/similarity_rare" not in found


def test_the_settings_are_written_as_text_and_for_the_table_of_runs(tmp_path: Path) -> None:
    write(tmp_path, start(), END)
    values = {value.tag: value for event in events(tmp_path) for value in event.summary.value}
    assert b"| model | lstm |" in values["run/text_summary"].tensor.string_val[0]
    plugins = {tag: value.metadata.plugin_data for tag, value in values.items()}
    assert [name for name in plugins if name.startswith("_hparams_")] == [
        "_hparams_/experiment",
        "_hparams_/session_start_info",
        "_hparams_/session_end_info",
    ]
    assert b"world_size" in plugins["_hparams_/session_start_info"].content
    assert b"validation/similarity" in plugins["_hparams_/experiment"].content
    assert b"test/balanced_accuracy" in plugins["_hparams_/experiment"].content


def test_points_can_be_read_during_the_run(tmp_path: Path) -> None:
    with TensorBoardWriter(tmp_path) as board:
        for number in range(1, 4):
            for line in [start(), step(1)] if number == 1 else [step(number)]:
                board.take(parsed(line))
            board.flush()
            assert [at for at, _ in points(tmp_path)["training/loss"]] == list(range(1, number + 1))


def test_a_step_without_a_speed_has_no_point_for_it(tmp_path: Path) -> None:
    write(tmp_path, start(), step(1, rate=None))
    assert "speed/rows_per_second" not in points(tmp_path)


FOUR = tuple(map(step, range(1, 5)))
AT_FOUR = [(number, 0.5) for number in range(1, 5)]


@pytest.mark.parametrize(
    ("sittings", "curve", "expected", "files"),
    [
        (
            [
                [
                    start(),
                    *FOUR,
                    epoch(1),
                    step(5),
                    step(6),
                    start(4),
                    epoch(1),
                    step(5, 0.125),
                    step(6, 0.125),
                    epoch(2),
                ]
            ],
            "training/loss",
            [*AT_FOUR, (5, 0.125), (6, 0.125)],
            1,
        ),
        (
            [[start(), step(4), epoch(1), start(2), step(4, 0.125), epoch(1), step(8), epoch(2)]],
            "validation/accuracy",
            [(4, 0.25), (8, 0.5)],
            1,
        ),
        ([[start(), step(8), epoch(2), judged(2), start(8), judged(2), END]], "test/accuracy", [(8, 0.875)], 1),
        (
            [[start(), step(4), epoch(1), step(8), epoch(2), judged(2), start(4), step(8), epoch(2), judged(1)]],
            "test/accuracy",
            [(4, 0.875)],
            1,
        ),
        (
            [[start(), *FOUR, step(5)], [start(), *FOUR, step(5), start(4), step(5, 0.125), step(8)]],
            "training/loss",
            [*AT_FOUR, (5, 0.125), (8, 0.5)],
            1,
        ),
        ([[start(), *FOUR, step(5), step(6)], [start(4), step(5, 0.125)]], "training/loss", [*AT_FOUR, (5, 0.125)], 2),
        ([[start(), *FOUR], []], "training/loss", AT_FOUR, 1),
    ],
    ids=["repeated", "measured again", "tested again", "trained further", "resumed", "record is lost", "never starts"],
)
def test_each_step_has_one_point_the_latest(
    sittings: list[list[dict]], curve: str, expected: list[tuple[int, float]], files: int, tmp_path: Path
) -> None:
    for sitting in sittings:
        write(tmp_path, *sitting)
    assert len(list(tmp_path.iterdir())) == files
    assert points(tmp_path)[curve] == expected


def test_a_new_run_removes_the_earlier_curves_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, start(), *map(step, range(1, 7)))
    (tmp_path / "notes.txt").write_text("mine")
    write(tmp_path, start(), step(1, loss=0.125))
    (tmp_path / "notes.txt").unlink()
    assert points(tmp_path)["training/loss"] == [(1, 0.125)]


def test_a_folder_that_cannot_be_written_is_reported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "board").write_text("a file")
    with TensorBoardWriter(tmp_path / "board") as board:
        for line in (start(), step(1), start(4), step(2)):
            board.take(parsed(line))
            board.flush()
    said = capsys.readouterr().err
    reason = "File exists; the run continues without curves for TensorBoard"
    assert said == f"  cannot write to {tmp_path}/board: {reason}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = Path.open
    monkeypatch.setattr(Path, "open", lambda *_, **how: opened(Path("/dev/full"), "wb", **how))
    with TensorBoardWriter(tmp_path) as board:
        for line in (start(), step(1), step(2)):
            board.take(parsed(line))
            board.flush()
    said = capsys.readouterr().err
    reason = "No space left on device; the run continues without curves for TensorBoard"
    assert said == f"  cannot write to {tmp_path}: {reason}\n"


def interrupted(board: TensorBoardWriter) -> None:
    with board:
        board.take(parsed(start()))
        board.take(parsed(step(1)))
        raise KeyboardInterrupt


def test_an_interrupt_leaves_what_was_taken_as_whole_events(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted(TensorBoardWriter(tmp_path))
    (path,) = tmp_path.iterdir()
    assert len(list(read(path))) == 6


def test_torch_is_not_loaded_for_it_and_can_be_afterwards() -> None:
    code = "import sys, json, bootstrap.training.tensorboard; print(json.dumps('torch' in sys.modules)); import torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is False
