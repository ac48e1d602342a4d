"""Errors as the user sees them: one sentence, status 1, no traceback."""

import itertools
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import h5py
import pytest
import torch
import torch.distributed as dist

from common.errors import TrainingError
from tests.trainer.runs import lines, notes, raising, run_here, summary
from trainer import stepper, task
from trainer.classification.metrics import CALIBRATION
from trainer.classification.task import Classification
from trainer.computing import optimiser
from trainer.config import configured
from trainer.distributed import exchange
from trainer.output import checkpoint, checkpoint_schedule
from trainer.output.opening import opened_output
from trainer.output.reporter import Reporter
from trainer.start import load_data, make_order, require_equal_settings
from trainer.task import TRAINING


@pytest.fixture(autouse=True)
def _each_epoch_is_kept(monkeypatch):
    monkeypatch.setattr(checkpoint_schedule, "_EPOCH_CHECKPOINT_SECONDS", 0.0)


@pytest.fixture
def refused(messages):
    """Return the function `refused(...)`: a run with these arguments ends with one sentence, which it returns."""

    def run(*arguments):
        status, errors = run_here(*arguments)
        assert status == 1
        assert len(errors.splitlines()) == 1
        messages.check(errors)
        return errors

    return run


@pytest.mark.parametrize(
    ("owner", "name", "replaced"),
    [(Reporter, "advance", False), (Reporter, "advance", True), (stepper, "measure_own_rates", True)],
    ids=["removed", "replaced", "replaced before an evaluation"],
)
def test_a_run_ends_without_its_output_folder(dataset, tmp_path, monkeypatch, owner, name, replaced, messages):
    output, calls = tmp_path / "run", []

    def lose_output(*_, **__):
        calls.append(name)
        if len(calls) == 1:
            output.rename(tmp_path / "moved")
            if replaced:
                output.mkdir()
        return [1.0]

    monkeypatch.setattr(owner, name, lose_output)
    status, errors = run_here("--data", dataset, "--output", output, "--epochs", "1")
    assert (status, len(calls) <= 3, output.exists()) == (1, True, replaced)  # the report of a step is a step late
    assert not list(output.glob("*"))
    messages.check(errors)


UNUSABLE = {
    "no dataset": ("--data", "absent.h5"),
    "another format": ("--data", "text.h5"),
    "a newer layout": ("--data", "newer.h5"),
    "an output that is a file": ("--output", "text.h5"),
    "a rank too many": ("--slow", "3:2"),
}


@pytest.mark.parametrize("options", UNUSABLE.values(), ids=UNUSABLE)
def test_a_run_that_cannot_start_is_one_sentence(dataset, tmp_path, monkeypatch, options, refused):
    monkeypatch.chdir(tmp_path)
    Path("text.h5").write_text("hello")
    with h5py.File("newer.h5", "w") as file:
        file.attrs["layout_version"] = 99
    refused("--data", dataset, "--output", "out", *options)


SGD = ("--model", "lstm", "--optimiser", "sgd")
FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.\nmore")
FULL_FOR_NCCL = dist.DistBackendError("NCCL error in: NCCLUtils.cpp:94\nCuda failure 2 'out of memory'")
FULL_FOR_CUBLAS = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")


@pytest.mark.parametrize(
    ("owner", "name", "error", "is_in_step"),
    [
        (optimiser.Optimiser, "__init__", FULL, False),
        (dist, "broadcast", FULL_FOR_NCCL, False),
        (exchange.GradientExchange, "reduce", FULL, True),
        (exchange.GradientExchange, "reduce", FULL_FOR_NCCL, True),
        (optimiser.Optimiser, "step", FULL, False),  # during the rate measurement
        (task, "stratified_rows", FULL_FOR_CUBLAS, True),
    ],
    ids=["optimiser", "broadcast", "reduce", "reduce by NCCL", "rates", "a product"],
)
def test_full_gpu_memory_is_one_sentence(monkeypatch, dataset, tmp_path, owner, name, error, is_in_step, refused):
    monkeypatch.setattr(owner, name, raising(type(error)(*error.args)))
    assert ("at step 1" in refused("--data", dataset, "--output", tmp_path)) is is_in_step


def test_a_diverged_run_keeps_its_checkpoint_and_resumes_with_a_smaller_rate(monkeypatch, dataset, tmp_path, messages):
    options = (
        "--data",
        dataset,
        "--output",
        tmp_path,
        *SGD,
        "--clip-norm",
        "0",
        "--epochs",
        "2",
        "--global-batch",
        "100",
    )
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_schedule, "_EPOCH_CHECKPOINT_SECONDS", 0.0)
        patch.setattr(task, "learning_rate", lambda _config, step, *_: 0.1 if step < 25 else 1e30)
        status, errors = run_here(*options)
    assert status == 1
    messages.check(errors)
    newest, _ = checkpoint.newest(tmp_path / "checkpoints")
    assert newest[0].name == "step-000000019.pt"
    assert all(weights.isfinite().all() for weights in newest[1]["model"].values())
    assert run_here(*options, "--learning-rate", "0.001", "--resume")[0] == 0
    messages.check("\n".join(notes(tmp_path)))
    assert summary(tmp_path)["rows_seen"] == 2 * 1900


def test_rows_that_no_rank_computes_end_the_run_before_a_checkpoint(monkeypatch, dataset, tmp_path, refused):
    own, dealt = task.stratified_rows, []

    def losing(*arguments):
        dealt.append(own(*arguments))
        return dealt[-1][1:] if len(dealt) == 25 else dealt[-1]

    monkeypatch.setattr(task, "stratified_rows", losing)
    refused("--data", dataset, "--output", tmp_path, "--epochs", "2", "--global-batch", "100")
    newest, _ = checkpoint.newest(tmp_path / "checkpoints")
    assert newest[0].name == "step-000000019.pt"


def test_checkpoints_of_an_unfinished_run_are_not_removed(dataset, tmp_path, refused):
    checkpoint.save(tmp_path / "checkpoints", {"some": "state"}, steps=3)
    (tmp_path / "record.jsonl").write_text('{"kind": "start"}\n')
    refused("--data", dataset, "--output", tmp_path)
    assert (tmp_path / "checkpoints" / "step-000000003.pt").exists()
    (tmp_path / "summary.json").write_text('{"stopped": false}')
    assert run_here("--data", dataset, "--output", tmp_path, "--epochs", "1") == (0, "")
    assert len(lines(tmp_path, "end")) == 1  # the record of the previous run is gone


@pytest.mark.parametrize("damaged", [True, False])
def test_the_absence_of_a_checkpoint_is_printed_and_noted(dataset, tmp_path, messages, damaged):
    file = tmp_path / "checkpoints" / "step-000000007.pt"
    if damaged:
        file.parent.mkdir()
        file.write_text("PK and nothing more")
    status, errors = run_here("--data", dataset, "--output", tmp_path, "--epochs", "1", "--resume")
    assert (status, notes(tmp_path)) == (0, [errors.strip()])
    messages.check(errors)
    assert file.with_name("step-000000007.pt.damaged").exists() is damaged


def test_a_run_of_another_version_is_never_restarted_from_the_beginning(dataset, tmp_path, refused):
    checkpoint.save(tmp_path / "checkpoints", {"format": 1}, steps=7)
    (tmp_path / "checkpoints" / "step-000000008.pt").write_text("PK and nothing more")
    refused("--data", dataset, "--output", tmp_path, "--resume")
    assert (tmp_path / "checkpoints" / "step-000000007.pt").exists()
    assert (tmp_path / "checkpoints" / "step-000000008.pt").exists()


@pytest.fixture
def unfinished(monkeypatch, dataset, tmp_path):
    """Return the command line of a run of four epochs that was lost before the evaluation of the second one."""
    options = ("--data", dataset, "--output", tmp_path)
    evaluate, epochs = Classification.evaluate, itertools.count()

    def lost(*arguments, **options):
        if next(epochs) == 1:
            raise KeyError
        return evaluate(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setenv("TORCHELASTIC_ERROR_FILE", "/tmp/none_first/attempt_0/0/error.json")
        patch.setattr(Classification, "evaluate", lost)
        assert run_here(*options, "--epochs", "4", "--global-batch", "100")[0] == 1
    return options


def test_a_resumed_run_keeps_its_steps(unfinished, tmp_path, refused):
    refused(*unfinished, "--epochs", "4", "--global-batch", "50", "--resume")
    assert run_here(*unfinished, "--resume") == (0, "")
    assert [line["from_step"] > 0 for line in lines(tmp_path, "start")] == [False, True]
    found = summary(tmp_path)
    assert (found["global_batch"], found["epochs"], found["steps"]) == (100, 4, 4 * 19)


def test_a_resumed_run_that_fails_immediately_names_its_checkpoint(monkeypatch, unfinished, tmp_path):
    own = task.stratified_rows
    monkeypatch.setattr(task, "stratified_rows", lambda *given: own(*given)[1:])
    status, errors = run_here(*unfinished, "--resume")
    step = lines(tmp_path, "start")[-1]["from_step"]
    assert (status, step > 0) == (1, True)
    assert f"and continue from step {step} with --resume" in errors


def test_a_global_batch_larger_than_the_rows_is_noted(dataset, tmp_path, messages):
    status, _ = run_here("--data", dataset, "--output", tmp_path, "--epochs", "1", "--global-batch", "5000")
    assert status == 0
    messages.check(*notes(tmp_path))


def test_unwritable_checkpoints_are_noted_and_do_not_end_the_run(dataset, tmp_path):
    (tmp_path / "checkpoints").write_text("in the way")
    assert run_here("--data", dataset, "--output", tmp_path, "--epochs", "1")[0] == 0
    assert "no checkpoint at step" in notes(tmp_path)[0]


ERRORS = {
    "of Python": KeyError("x"),
    "with several lines": OSError("Can't read data\nmore"),
    "of CUDA": RuntimeError("CUDA error: an illegal access"),
    "no memory": MemoryError(),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_an_unexpected_error_is_reported_with_a_traceback(monkeypatch, dataset, tmp_path, error, messages):
    monkeypatch.setattr(task, "stratified_rows", raising(error))
    status, errors = run_here("--data", dataset, "--output", tmp_path)
    assert status == 1
    messages.check(errors.splitlines()[-1])
    assert errors.startswith("Traceback")


@pytest.mark.parametrize("model", ["lstm", "linear"])
def test_a_run_stopped_before_its_test_is_calibrated_like_an_undisturbed_one(dataset, tmp_path, model):
    arguments = ("--data", dataset, "--output", tmp_path, "--epochs", "1", "--metric", "balanced", "--model", model)
    summaries = []
    for resumed in ((), ("--resume",)):
        assert run_here(*arguments, *resumed)[0] == 0
        found = summary(tmp_path)
        summaries.append({name: found[name] for name in (*CALIBRATION, "accuracy", "macro_f1", "confusion")})
        (tmp_path / "summary.json").unlink()
    assert summaries[0] == summaries[1]
    assert summaries[0]["threshold"] != 0.5


def test_an_evaluation_without_a_number_stops_the_run(dataset, tmp_path):
    options = (*SGD, "--loss", "mse", "--learning-rate", "1e12", "--rate-scaling", "none")
    only_step = ("--global-batch", "4000", "--epochs", "1", "--clip-norm", "0", "--warm-up", "0")
    status, errors = run_here("--data", dataset, "--output", tmp_path, *options, *only_step)
    assert status == 1
    assert "the validation rows" in errors
    assert "at step 1; lower --learning-rate" in errors


def test_a_machine_that_joins_does_not_restart_a_run_from_the_beginning(tmp_path, messages):
    joined = SimpleNamespace(is_first=False, agreement=nullcontext, broadcast=lambda _: (None, False))
    checkpoint.save(tmp_path / "checkpoints", {"some": "state"}, steps=3)
    with messages.raises(TrainingError), opened_output(tmp_path, joined, resume=True, force=False):
        pass
    for folder, found in ((tmp_path / "empty", False), (tmp_path, True)):
        joined.broadcast = lambda _, found=found: (None, found)
        with opened_output(folder, joined, resume=True, force=False) as opened:
            assert opened == (None, [])


def test_ranks_with_other_settings_are_refused(tmp_path, messages):
    config = configured({"model": "lstm", "data": Path("d.h5"), "output": tmp_path})
    ranks = SimpleNamespace(world_size=2, agreement=nullcontext, broadcast=lambda _: config.plain())
    require_equal_settings(replace(config, threads=7, data=Path("e.h5")), ranks)
    with messages.raises(TrainingError):
        require_equal_settings(config.changed(learning_rate=0.5), ranks)


def test_ranks_share_the_memory_of_a_machine_and_another_dataset_is_refused(tmp_path, messages, monkeypatch):
    config, first, memories = configured({"model": "lstm", "data": Path("d.h5"), "output": tmp_path}), ["a"], []
    ranks = SimpleNamespace(
        world_size=2,
        local_size=2,
        agreement=lambda **_: nullcontext(),
        gather=lambda mine: [mine, mine],
        broadcast=lambda _: first[0],
    )
    monkeypatch.setattr("trainer.distributed.memory.free", lambda: 100)
    task = SimpleNamespace(load=lambda *_, memory, **__: memories.append(memory) or SimpleNamespace(digest="a"))
    load_data(task, config, ranks, lambda: False)
    first[0] = "b"
    with messages.raises(TrainingError):
        load_data(task, config, ranks, lambda: False)
    assert memories == [50, 50]  # the share of a rank


@pytest.mark.parametrize("resumed", [False, True], ids=["new", "resumed"])
def test_a_global_batch_has_a_row_for_each_rank(resumed, messages):
    data = SimpleNamespace(sizes={TRAINING: 100})
    ranks = SimpleNamespace(world_size=2, agreement=nullcontext)
    assert make_order(2, 0, ranks, data, resumed=resumed).size(0) == 2
    ranks.world_size = 3
    with messages.raises(TrainingError):
        make_order(2, 0, ranks, data, resumed=resumed)
