"""`make gpu`: its parts in a tiny size on a CPU, how they run, and the packages they need."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import record
from benchmarks.gpu import run

ROOT = Path(__file__).parents[2]
ABSENT = "h5py rich psutil pandas polars mrjob boto3 orjson numba pyarrow pydantic yaml triton"


def gpu(module: str) -> Any:
    """Import a module of the benchmark, which imports torch."""
    return import_module(f"benchmarks.gpu.{module}")


def cpu() -> Any:
    import torch

    return torch.device("cpu")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts have few words, and runs do not measure their ranks' own rates, which takes a second and a half."""
    for name in ("measure_initial_rates", "measure_own_rates"):
        monkeypatch.setattr(f"trainer.stepper.{name}", lambda *_, **__: [1000.0])
    for module in ("texts", "checks"):
        monkeypatch.setattr(gpu(module), "WORDS", 5000)
    monkeypatch.setitem(gpu("yelp")._MODEL, "buckets", 5000)


def run_without(absent: str, code: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-c", f"import sys; sys.modules.update(dict.fromkeys({absent.split()}))\n{code}"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True)


WORDS = {"rows": 200, "words": 500, "batches": (50,), "sizes": (8,), "seconds": 3}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        pytest.param("checks", {"rows": 64}, marks=pytest.mark.soak),
        ("rates", {"rows": 200, "batches": (20,), "runs": 1}),
        ("nccl", {"rows": 2000, "global_batch": 100, "epochs": 1}),
        ("yelp", {"rows": 200, "validation": 20, "test": 20, "batches": (50,), "seconds": 60}),
        pytest.param("words", WORDS, marks=pytest.mark.soak),
    ],
)
def test_part_runs_on_a_cpu_in_a_tiny_size(monkeypatch, capsys, name: str, sizes: dict[str, Any]) -> None:
    part = gpu(name)
    monkeypatch.setattr(gpu("nccl"), "_LEARNED", 0.0)  # because a run of few rows does not learn
    if name == "rates":  # with one model instead of two
        monkeypatch.delitem(gpu("part").SETTINGS, "reference")
    found = part.measure(cpu(), part.Sizes(**sizes))
    assert not found.failed, found.said
    assert "\n" not in found.said
    assert json.loads(json.dumps(found.figures))
    assert capsys.readouterr().out


@pytest.mark.usefixtures("small")
def test_training_that_exceeds_its_time_ends_with_a_projection(monkeypatch: pytest.MonkeyPatch) -> None:
    yelp = gpu("yelp")

    class ElapsedTimer:
        """A timer that fires when the run measures its rank's own rate, independently of this machine's speed."""

        def __init__(self, _seconds: float, call, arguments) -> None:
            monkeypatch.setattr("trainer.stepper.measure_initial_rates", lambda *_, **__: call(*arguments) or [1000.0])

        def start(self) -> None: ...

        cancel = join = start

    monkeypatch.setattr(gpu("training"), "Timer", ElapsedTimer)
    found = yelp.measure(cpu(), yelp.Sizes(rows=5000, validation=20, test=20, batches=(50,)))
    (trained,) = found.figures["trainings"]
    assert trained["summary"]["stopped"]
    assert trained["epochs"] < yelp.EPOCHS
    times = trained["summary"]["times"]
    assert trained["projected"] == pytest.approx(
        yelp.EPOCHS / trained["epochs"] * (times["training"] + times["evaluation"])
    )


def test_rows_have_the_lengths_of_reviews_and_predict_their_label() -> None:
    made = gpu("rows")
    rows = made.make_rows(5000, cpu())
    real = np.arange(made.ROW_LENGTH) < rows.lengths[:, None]
    assert ((rows.tokens > 1) == real).all()
    assert rows.tokens.max() <= made.VOCABULARY + 1
    assert 35 < rows.lengths.mean() < 50
    odd = (rows.tokens % 2 * real).sum(1) / rows.lengths
    assert odd[rows.labels == 1].mean() == pytest.approx(0.625, abs=0.03)
    assert odd[rows.labels == 0].mean() == pytest.approx(0.375, abs=0.03)
    counts = np.bincount(rows.tokens[real], minlength=made.VOCABULARY + 2)
    assert counts.max() < 0.02 * counts.sum()
    assert np.array_equal(made.make_rows(5000, cpu()).tokens, rows.tokens)


PARTS = {
    "good": "import json, sys; from pathlib import Path; print('at work', flush=True); "
    "Path(sys.argv[1]).write_text(json.dumps({'said': 'all is well', 'failed': False, 'figures': {'ms': 1}}))",
    "bad": "raise SystemExit('no such luck')",
    "endless": "import time; time.sleep(600)",
    "quiet": "",
    "partly": "import json, sys; from pathlib import Path; "
    "Path(sys.argv[1]).write_text(json.dumps({'said': '', 'failed': True, 'figures': {'ms': 2}})); "
    "raise SystemExit('its memory was full')",
}


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five parts, one of them successful. Returns the folder of their records."""
    monkeypatch.setattr(run, "_lacking", lambda: None)
    monkeypatch.setattr(run, "PARTS", {name: run.GpuPart(name, name, 30) for name in PARTS})
    monkeypatch.setitem(run.PARTS, "endless", run.GpuPart("endless", "endless", 1))
    monkeypatch.setattr(run, "_command", lambda part, path: [sys.executable, "-c", PARTS[part.module], str(path)])
    monkeypatch.setattr(record.Log, "folder", tmp_path)
    return tmp_path


def test_failed_part_does_not_stop_the_others(parts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run.main(["bad", "endless", "quiet", "partly", "good"])
    assert ended.value.code == 1
    table = capsys.readouterr().out.splitlines()[-5:]
    assert [[cell.strip() for cell in line.split("|")[1:4]] for line in table] == [
        ["bad", "failed", "no such luck"],
        ["endless", "failed", "it took longer than 1 seconds"],
        ["quiet", "failed", "it printed nothing"],
        ["partly", "failed", "its memory was full"],
        ["good", "done", "all is well"],
    ]
    kept = json.loads((parts / "gpu-good.json").read_text())
    assert kept["figures"] == {"ms": 1}
    assert kept["machine"]["cores"]
    assert "at work" in (parts / "gpu-good.log").read_text()
    assert json.loads((parts / "gpu-endless.json").read_text())["failed"]
    partly = json.loads((parts / "gpu-partly.json").read_text())
    assert (partly["failed"], partly["said"], partly["figures"]) == (True, "its memory was full", {"ms": 2})


def test_parts_without_remaining_time_are_left_out(parts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run.main(["good", "--seconds", "0"])
    assert "| good | left out | no time was left |" in capsys.readouterr().out
    assert not (parts / "gpu-good.json").exists()


def test_unknown_part_is_wrong_use(capsys: pytest.CaptureFixture[str], messages) -> None:
    with pytest.raises(SystemExit) as ended:
        run.main(["rates", "nope"])
    assert ended.value.code == 2
    messages.check(capsys.readouterr().err.splitlines()[-1])


def test_part_runs_in_its_own_process_and_writes_its_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = run.GpuPart("part", "", 0)
    command = run._command(part, tmp_path / "outcome.json")
    assert command[:3] == [sys.executable, "-m", "benchmarks.gpu"]
    child, outcome = gpu("__main__"), gpu("part").Outcome
    module = SimpleNamespace(Sizes=dict, measure=lambda device, sizes: outcome(f"{device.type} {sizes}", {}, True))
    monkeypatch.setitem(sys.modules, "benchmarks.gpu.some", module)
    monkeypatch.setattr(gpu("part").OutcomeFile, "path", None)  # restores it after the test
    monkeypatch.setattr("sys.argv", ["gpu", "some", str(tmp_path / "outcome.json")])
    monkeypatch.setattr(child.ctypes, "CDLL", lambda _: SimpleNamespace(prctl=lambda *_: 0))
    assert child.main() == 1
    assert json.loads((tmp_path / "outcome.json").read_text()) == {"said": "cpu {}", "figures": {}, "failed": True}


@pytest.mark.parametrize("names", [[], ["rates"]])
def test_without_a_gpu_one_sentence_is_printed_and_nothing_fails(monkeypatch, capsys, names, messages) -> None:
    torch = import_module("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    run.main(names)
    messages.hide(torch.__version__, "VERSION")
    messages.check(capsys.readouterr().out)


RUN = "import runpy; sys.argv = ['benchmarks', {argument!r}]; runpy.run_module('benchmarks', run_name='__main__')"


def test_without_a_package_one_sentence_is_printed_and_nothing_fails(messages) -> None:
    done = run_without(f"{ABSENT} torch", RUN.format(argument="gpu"))
    assert (done.returncode, done.stderr) == (0, "")
    messages.hide(sys.executable, "PYTHON")
    messages.check(done.stdout)


TINY = """
from importlib import import_module
import torch
from benchmarks.gpu.run import PARTS
modules = {part.module: import_module(f"benchmarks.gpu.{part.module}") for part in PARTS.values()}
from trainer import run
run.measure_initial_rates = run.measure_own_rates = lambda *_, **__: [1000.0]
print(modules["nccl"].measure(torch.device("cpu"), modules["nccl"].Sizes(rows=1000, global_batch=100, epochs=1)).said)
"""


@pytest.mark.soak
def test_parts_need_no_other_packages() -> None:
    done = run_without(ABSENT, TINY)
    assert done.returncode == 0, done.stderr
    assert "gloo; trained in float32 at" in done.stdout
