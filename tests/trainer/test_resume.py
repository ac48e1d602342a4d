"""A run that is killed repeatedly, and resumes with other numbers of ranks, learns what an undisturbed one learns."""

import random
import time

import pytest
import torch

from tests.trainer.runs import finish, kill_all, summary, wait_for_lines, weights
from trainer.output.lines import parse_line

KILLS = 20
EPOCHS, STEPS = 8, 30
LEARNING = (
    "--model", "lstm",
    "--epochs", EPOCHS, "--global-batch", 64, "--dropout", 0.2, "--embedding-dropout", 0.2, "--layers", 2,
    "--learning-rate", 1e-3, "--threads", 1, "--checkpoint-minutes", 0.004,
)  # fmt: skip


def events(output, kind):
    """Return the lines of a kind in the record of a run that was killed, perhaps while it wrote a line."""
    record = output / "record.jsonl"
    whole = filter(None, map(parse_line, record.read_bytes().splitlines() if record.exists() else []))
    return [line.plain() for line in whole if line.plain()["kind"] == kind]


def step_losses(output):
    return {line["step"]: line["loss"] for line in events(output, "step")}


@pytest.mark.soak
def test_a_run_killed_twenty_times_has_the_curve_of_an_undisturbed_one(launch, dataset, tmp_path):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    assert launch(1, "-m", "trainer", "--data", dataset, "--output", undisturbed, *LEARNING).wait(240) == 0
    chance = random.Random(0)
    worlds = set()
    for kill in range(KILLS):
        ranks = chance.choice([1, 2, 3])
        slow = [f"{rank}:{chance.choice([8, 12, 20])}" for rank in range(ranks)]
        # A run that starts from the beginning replaces the record, which then has as many starts as before.
        start, steps = events(killed, "start")[-1:], len(events(killed, "step")) + chance.randint(0, 12)
        running = launch(
            ranks, "-m", "trainer", "--data", dataset, "--output", killed, *LEARNING, "--slow", *slow, "--resume"
        )
        while running.poll() is None and (events(killed, "start")[-1:] == start or len(events(killed, "step")) < steps):
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
    assert summary(killed)["rows_seen"] == summary(undisturbed)["rows_seen"] == EPOCHS * 1900


@pytest.mark.slow
def test_killed_ranks_that_resume_with_the_same_shares_have_bit_identical_weights(launch, dataset, tmp_path):
    """So the only difference after a kill is the order of sums, which depends on the ranks' shares."""
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    program = ("-m", "trainer", "--data", dataset, *LEARNING, "--epochs", 2, "--balance", "3,1", "--output")
    finish(launch(2, *program, undisturbed))
    for _ in range(2):
        checkpoints = len(events(killed, "checkpoint"))
        running = launch(2, *program, killed, "--resume")
        wait_for_lines(running, killed, "checkpoint", checkpoints + 1)
        kill_all(running)
    finish(launch(2, *program, killed, "--resume"))
    assert step_losses(killed) == step_losses(undisturbed)
    ended, expected = weights(killed), weights(undisturbed)
    assert ended.keys() == expected.keys()
    assert all(torch.equal(ended[name], expected[name]) for name in expected)
