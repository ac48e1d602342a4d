"""A run that is killed repeatedly, and resumes with other numbers of ranks, learns what an undisturbed one learns."""

import json
import random
import subprocess
import time
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file

from tests.trainer.runs import finish, wait_for_lines

KILLS = 20
EPOCHS, STEPS = 8, 30
LEARNING = (
    "--epochs", EPOCHS, "--global-batch", 64, "--dropout", 0.2, "--embedding-dropout", 0.2, "--layers", 2,
    "--learning-rate", 1e-3, "--threads", 1, "--record-every", 1, "--checkpoint-minutes", 0.004,
)  # fmt: skip


def step_losses(output: Path) -> dict[int, float]:
    found = {}
    for line in (output / "record.jsonl").read_text().splitlines():
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue  # an incomplete line of a killed run
        if event["kind"] == "step":
            found[event["step"]] = event["loss"]
    return found


def events(output: Path, kind: str) -> int:
    record = output / "record.jsonl"
    return record.read_text().count(f'"kind": "{kind}"') if record.exists() else 0


def newest_start(output: Path) -> str | None:
    """Return the latest start. A run that starts from the beginning replaces the record, which then has as many starts
    as before."""
    record = output / "record.jsonl"
    starts = [line for line in record.read_text().splitlines() if '"kind": "start"' in line] if record.exists() else []
    return starts[-1] if starts else None


def kill_all(process: "subprocess.Popen[str]") -> None:
    """Kill torchrun and all ranks at once, like a lost machine."""
    for each in [*psutil.Process(process.pid).children(recursive=True), process]:
        each.kill()
    process.communicate()


@pytest.mark.soak
def test_a_run_killed_twenty_times_has_the_curve_of_an_undisturbed_one(launch, dataset, tmp_path):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    assert launch(1, "-m", "trainer", "--data", dataset, "--output", undisturbed, *LEARNING).wait(240) == 0
    chance = random.Random(0)
    worlds = set()
    for kill in range(KILLS):
        ranks = chance.choice([1, 2, 3])
        slow = [f"{rank}:{chance.choice([8, 12, 20])}" for rank in range(ranks)]
        start, steps = newest_start(killed), events(killed, "step") + chance.randint(0, 12)
        running = launch(
            ranks, "-m", "trainer", "--data", dataset, "--output", killed, *LEARNING, "--slow", *slow, "--resume"
        )
        while running.poll() is None and (newest_start(killed) == start or events(killed, "step") < steps):
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 0.1))
        assert running.poll() is None, f"it ended before kill {kill}: {running.communicate()[1]}"
        worlds.add(ranks)
        kill_all(running)
    assert worlds == {1, 2, 3}
    assert 1 < len(step_losses(killed)) < EPOCHS * STEPS
    end = launch(2, "-m", "trainer", "--data", dataset, "--output", killed, *LEARNING, "--resume")
    assert end.wait(240) == 0
    assert sorted(step_losses(killed)) == list(range(1, EPOCHS * STEPS + 1))
    assert step_losses(killed) == pytest.approx(step_losses(undisturbed), rel=2e-3)
    rows_seen = [json.loads((output / "summary.json").read_text())["rows_seen"] for output in (undisturbed, killed)]
    assert rows_seen == [EPOCHS * 1900] * 2


@pytest.mark.slow
@pytest.mark.parametrize("shares", ["off", "3,1"])
def test_killed_ranks_that_resume_with_the_same_shares_have_bit_identical_weights(launch, dataset, tmp_path, shares):
    """So the only difference after a kill is the order of sums, which depends on the ranks' shares."""
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    program = ("-m", "trainer", "--data", dataset, *LEARNING, "--epochs", 2, "--balance", shares, "--output")
    finish(launch(2, *program, undisturbed))
    for _ in range(2):
        checkpoints = events(killed, "checkpoint")
        running = launch(2, *program, killed, "--resume")
        wait_for_lines(running, killed, "checkpoint", checkpoints + 1)
        kill_all(running)
    finish(launch(2, *program, killed, "--resume"))
    assert step_losses(killed) == step_losses(undisturbed)
    ended, expected = (load_file(output / "model" / "model.safetensors") for output in (killed, undisturbed))
    assert ended.keys() == expected.keys()
    assert all(torch.equal(ended[name], expected[name]) for name in expected)
