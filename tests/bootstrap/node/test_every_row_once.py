"""A run makes each step once and loses no checkpoint, whatever is lost, cut off, delayed or stopped.

Ranks are simulated. The ranks of an attempt meet when all of them run, continue from the newest checkpoint of the first
one, and make steps together. A checkpoint is a file with all steps so far.
"""

import json
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bootstrap.node.node_documents import RunEnd
from bootstrap.node.stage import stage
from common import names
from tests.bootstrap.node.world import RUN, World, request

STEPS = 40
"""Steps of the run."""


class Training:
    """Ranks of a world in which each node has a folder of its own."""

    def __init__(self, world):
        self.world = world
        self.steps = {}
        """Steps of the ranks that have met, including those before their checkpoint, by attempt."""
        self.best = 0
        """Newest checkpoint that was ever in the bucket."""
        for instance in world.programs:
            self.prepare(instance)

    def prepare(self, instance):
        """Put the dataset on a node."""
        data = self.world.agents[instance]._node.machine.data(self.world.request)
        data.parent.mkdir(parents=True, exist_ok=True)
        data.touch()

    def folder(self, instance):
        return self.world.agents[instance]._node.machine.run(self.world.request)

    def look(self):
        """Run the staging programs, and record the newest checkpoint in the bucket."""
        for instance, programs in self.world.programs.items():
            for name in programs.running():
                if name.endswith("/stage") and instance not in self.world.cut:
                    machine = self.world.agents[instance]._node.machine
                    stage(self.world.request, machine, self.world.channel, lambda _: None)
                    programs.states[name] = 0
        kept = self.world.channel.list(f"{names.RUNS}{RUN}/checkpoints/")
        newest = max((int(key[-len("000000000.pt") : -len(".pt")]) for key in kept), default=0)
        assert newest >= self.best or self.summary() is not None
        self.best = max(self.best, newest)

    def learn(self, count):
        """Make `count` steps with all ranks that have met; ranks fail if one of them is gone."""
        for attempt in self.world.attempts():
            programs = [self.world.programs[each].states.get(f"{attempt.name}/train") for each in attempt.instances]
            if not any(state == "running" for state in programs):
                continue
            if all(state == "running" for state in programs):
                self._make(attempt, count)
            elif attempt.name in self.steps:
                for instance in attempt.instances:
                    self.end(attempt, instance, 1)

    def end(self, attempt, instance, status):
        """End the ranks of a node if they run."""
        states, name = self.world.programs[instance].states, f"{attempt.name}/train"
        if states.get(name) == "running":
            states[name] = status

    def stop(self):
        """Stop the attempts in which a rank was asked to stop, with a checkpoint if the ranks have met."""
        for attempt in self.world.attempts():
            name = f"{attempt.name}/train"
            of = {each: self.world.programs[each] for each in attempt.instances}
            if not any(name in each.stopped and each.states.get(name) == "running" for each in of.values()):
                continue
            if attempt.name in self.steps and all(each.states.get(name) == "running" for each in of.values()):
                self._save(attempt)
                self._summarise(attempt, stopped=True)
                for instance in of:
                    self.end(attempt, instance, 0)
            for instance, programs in of.items():
                if name in programs.stopped:
                    self.end(attempt, instance, 143)

    def summary(self):
        """Return the steps of a finished run."""
        found = self.world.channel.read(f"{names.RUNS}{RUN}/summary.json")
        summary = json.loads(found.text) if found else {"stopped": True}
        return None if summary["stopped"] else list(summary["steps"])

    def _make(self, attempt, count):
        first = self.folder(attempt.instances[0])
        if attempt.name not in self.steps:
            newest = max((first / "checkpoints").glob("step-*.pt"), default=None)
            self.steps[attempt.name] = json.loads(newest.read_text()) if newest else []
        steps = self.steps[attempt.name]
        steps += range(len(steps), min(len(steps) + count, STEPS))
        self._save(attempt)
        if len(steps) == STEPS:
            self._summarise(attempt, stopped=False)
            for instance in attempt.instances:
                self.end(attempt, instance, 0)

    def _save(self, attempt):
        steps = self.steps[attempt.name]
        folder = self.folder(attempt.instances[0]) / "checkpoints"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"step-{len(steps):09}.pt").write_text(json.dumps(steps))
        for old in sorted(folder.iterdir())[:-2]:
            old.unlink()

    def _summarise(self, attempt, *, stopped):
        content = {"stopped": stopped, "steps": self.steps[attempt.name]}
        (self.folder(attempt.instances[0]) / "summary.json").write_text(json.dumps(content))


EVENTS = st.tuples(
    st.sampled_from(["learn", "learn", "pass", "pass", "lose", "cut", "heal", "back", "crash", "ended from outside"]),
    st.integers(0, 2),
)


def happen(training, event, number):
    world = training.world
    instance = sorted(world.programs)[number]
    match event:
        case "learn":
            training.learn(3 + number)
        case "pass":
            world.pass_by((6, 30, 90)[number])
        case "lose":
            world.lose(instance)
        case "cut":
            world.cut.add(instance)
        case "heal":
            world.cut.discard(instance)
        case "back":
            world.gone.discard(instance)
            world.crash(instance)
        case "crash":
            world.crash(instance)
        case "ended from outside":
            world.programs[instance].stopped |= {each for each in world.programs[instance].running() if "train" in each}
    training.stop()
    training.look()


@pytest.mark.slow
@example([("pass", 1), ("pass", 0), ("learn", 0), ("lose", 1), ("learn", 0)])
@given(st.lists(EVENTS, max_size=40))
def test_a_run_ends_with_every_step_made_once(events):
    # Here losses may come faster than steps, which would end a run after three attempts.
    with tempfile.TemporaryDirectory() as folder, mock.patch("bootstrap.node.membership.FRUITLESS", 1000):
        world = World(Path(folder), request(trainers=3, share=None))
        training = Training(world)
        for event, number in events:
            happen(training, event, number)
        world.cut.clear()
        world.gone.clear()
        for _ in range(60):
            if world.end() is not None:
                break
            for event in ("pass", "learn"):
                happen(training, event, 1)
        assert world.end() == RunEnd(token=world.request.token, outcome="finished")
        assert training.summary() == list(range(STEPS))
