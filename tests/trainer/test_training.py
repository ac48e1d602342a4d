"""Whole runs, as users start them: what they learn, and independence of the ranks."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.trainer.runs import finish, lines, step_losses, stop, summary, train_here, wait_for_lines, weights
from trainer.classification.calibration import calibrate
from trainer.classification.data import load_data
from trainer.classification.evaluate import evaluate
from trainer.classification.model_folder import load_model
from trainer.computing.threads import Threads
from trainer.distributed.ranks import join_process_group
from trainer.output.lines import Test, parse_line
from trainer.output.run_files import MODEL_FILES, ONNX, PROGRAM, REQUIREMENTS
from trainer.output.summary import Metrics

# The result depends on the ranks only by rounding, which stays small for small steps.
LEARNING = (
    "--model", "lstm",
    "--epochs", "3", "--global-batch", "64", "--layers", "2", "--dropout", "0.2", "--embedding-dropout", "0.2",
    "--learning-rate", "3e-3", "--rate-scaling", "none", "--loss", "bce", "--threads", "1",
    "--metric", "f1-macro",
)  # fmt: skip


@pytest.fixture(scope="module")
def alone(dataset, tmp_path_factory):
    """A run on one rank, without torchrun."""
    output = tmp_path_factory.mktemp("alone")
    train_here(output, "--data", dataset, *LEARNING)
    return output


@pytest.fixture(scope="module")
def uneven(launch, dataset, tmp_path_factory):
    """The same run on two ranks, with rows on disk. By a simulated clock, the second rank is five times slower."""
    output = tmp_path_factory.mktemp("uneven")
    options = ("--slow", "1:5", *LEARNING)
    finish(launch(2, "-m", "tests.trainer.simulated_clock", "--data", dataset, "--output", output, *options))
    return output


def test_a_run_learns_and_saves_the_weights_of_the_last_epoch(alone):
    found, last = summary(alone), lines(alone, "epoch")[-1]
    assert found["accuracy"] > found["majority"] + 0.1
    assert min(found["f1_negative"], found["f1_positive"], found["balanced_accuracy"]) > 0.8
    measures = json.loads((alone / "model" / "measures.json").read_text())
    assert measures["epoch"] == last["epoch"] == found["epochs"]
    assert found["validation"] == last["validation"]


def test_lines_of_the_record_survive_a_round_trip(uneven):
    for line in (uneven / "record.jsonl").read_bytes().splitlines():
        found = parse_line(line)
        assert json.loads(json.dumps(found.plain())) == json.loads(line)
        assert not isinstance(found, Test) or found.measures.keys() <= Metrics.__annotations__.keys()


def test_the_summary_counts_steps_and_rows(uneven):
    found = summary(uneven)
    assert (found["rows"], found["epochs"], found["rows_seen"], found["steps"]) == (1900, 3, 5700, 90)
    assert (found["world_size"], found["global_batch"], found["stopped"]) == (2, 64, False)
    assert found["samples_per_second"] == pytest.approx(found["rows_seen"] / found["seconds"])
    assert found["share_of_ideal"] == pytest.approx(found["samples_per_second"] / sum(found["own_rates"]))
    assert sum(found["split"]) == 64
    assert lines(uneven, "end")[0]["accuracy"] == found["accuracy"]


def test_ranks_share_the_rows_by_their_own_rates_from_the_first_step(uneven):
    found = summary(uneven)
    assert found["own_rates"] == pytest.approx([1000, 200])
    splits = [line["split"] for line in lines(uneven, "step")]
    assert {tuple(split) for split in splits if sum(split) == 64} == {(54, 10)}  # 54 and 50 ms
    assert found["rows_of_ranks"] == np.sum(splits, axis=0).tolist()
    assert sum(found["rows_of_ranks"]) == found["rows_seen"]


def test_the_summary_shows_where_the_time_went(uneven, alone):
    for output in (uneven, alone):
        found = summary(output)
        assert found["balanced"] + sum(found["lost"].values()) == pytest.approx(1.0)
        assert min(found["balanced"], *found["lost"].values()) >= 0
        for phases in found["profile"]:
            assert {"order", "rows", "forward", "backward", "pack", "all_reduce", "update"} <= set(phases)
            assert 0 < sum(phases.values()) < 1.01 * found["seconds"]
    assert "slowed" in summary(uneven)["profile"][1]
    assert "slowed" not in summary(uneven)["profile"][0]
    assert summary(alone)["lost"]["imbalance"] == pytest.approx(0, abs=1e-6)


def test_the_times_of_a_run_add_up(alone):
    found, times = summary(alone), summary(alone)["times"]
    assert sum(times.values()) == pytest.approx(found["wall"])
    assert times["training"] + times["checkpoints"] == pytest.approx(found["seconds"])
    assert min(times[name] for name in ("loading", "rates", "training", "checkpoints", "evaluation")) > 0


def test_test_rows_are_evaluated_once_with_the_saved_weights(uneven):
    (tested,) = lines(uneven, "test")
    assert tested["epoch"] == summary(uneven)["epochs"]
    assert tested["accuracy"] == summary(uneven)["accuracy"]
    kept = json.loads((uneven / "model" / "measures.json").read_text())["test"]
    assert kept == {name: tested[name] for name in kept}
    assert {"epoch", "loss", "validation", "kind", "time"} == lines(uneven, "epoch")[0].keys()


def test_unequal_ranks_learn_the_same_as_one(alone, uneven):
    assert step_losses(uneven) == pytest.approx(step_losses(alone), rel=1e-3)
    for name, expected in weights(alone).items():
        assert torch.allclose(weights(uneven)[name], expected, atol=2e-3), name


def test_one_rank_calibrates_and_evaluates_like_two(uneven, dataset):
    model, data, found_summary = load_model(uneven), load_data(dataset), summary(uneven)
    logits = torch.zeros(len(data.validation), 2)
    plain = replace(model.loss, temperature=1.0, threshold=0.5)

    def alone(rows, loss, logits=None):
        split, threads = np.array([len(rows)]), Threads(1)
        found = evaluate(
            model.classifier, rows, split=split, loss=loss, threads=threads, stop=lambda: False, logits=logits
        )
        assert found is not None
        return found

    with join_process_group(1):
        alone(data.validation, plain, logits)
        tested = alone(data.test, model.loss)
    labels = torch.from_numpy(data.validation.labels).long()
    expected, _ = calibrate(plain, logits, labels, "f1-macro")
    assert (found_summary["temperature"], found_summary["threshold"]) == (model.loss.temperature, model.loss.threshold)
    assert model.loss.temperature == pytest.approx(expected.temperature, rel=1e-4) != 1
    assert model.loss.threshold == pytest.approx(expected.threshold, rel=1e-4)
    assert found_summary["log_loss"] == pytest.approx(tested.log_loss)
    assert found_summary["uncalibrated_log_loss"] == pytest.approx(tested.uncalibrated)
    assert found_summary["confusion"]["counts"] == [list(counts) for counts in tested.confusion.counts]


def test_a_model_folder_needs_no_other_file(alone):
    folder = alone / "model"
    assert {path.name for path in folder.iterdir()} == {*MODEL_FILES} - {ONNX, PROGRAM, REQUIREMENTS}
    config = json.loads((folder / "config.json").read_text())
    assert (folder / "vocabulary.txt").read_text().startswith("gooda\n")
    assert config["stopwords"] == ["the"]
    assert config["data"] == {"dataset": summary(alone)["digest"], "rating_steps": 1, "rating_fraction": False}


@pytest.mark.slow
def test_a_stopped_run_resumes_as_if_undisturbed(launch, dataset, alone, tmp_path):
    arguments = ["-m", "trainer", "--data", dataset, "--output", tmp_path, *LEARNING]
    first = launch(2, *arguments, "--slow", "0:9", "1:12")
    wait_for_lines(first, tmp_path, "step", 35)
    errors = stop(first)
    assert summary(tmp_path)["stopped"], errors
    assert 35 <= summary(tmp_path)["steps"] < 90
    assert summary(tmp_path)["accuracy"] is None
    assert sum(summary(tmp_path)["rows_of_ranks"]) == summary(tmp_path)["rows_seen"]
    assert {sum(line["split"]) for line in lines(tmp_path, "step")} == {64, 44}  # the last step of an epoch is short

    (tmp_path / "checkpoints" / "step-000000089.pt").write_bytes(b"half a checkpoint")
    said = finish(launch(0, *arguments, "--resume"))
    assert "step-000000089.pt is damaged" in said
    assert summary(tmp_path)["rows_seen"] == 5700
    assert step_losses(tmp_path) == pytest.approx(step_losses(alone), rel=1e-3)
    assert summary(tmp_path)["accuracy"] == pytest.approx(summary(alone)["accuracy"], abs=0.01)
