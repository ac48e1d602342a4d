"""Nodes that join, leave and return: attempts follow each other until the run ends."""

import functools
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bootstrap.node.documents import JsonDocument
from tests.bootstrap.node.world import FIRST, RUN, SECOND, World, request

TABLE = yaml.safe_load(Path(__file__).with_name("attempts.yaml").read_text())


@pytest.fixture(autouse=True, scope="module")
def parsed_once():
    """Parse each text once: simulated nodes read the same documents in each simulated second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JsonDocument, "from_json", classmethod(functools.cache(JsonDocument.from_json.__func__)))
        yield


def flat(events):
    for each in events:
        yield from flat(each) if isinstance(each, list) else [each]


def play(world, event):
    """Apply an event of the table."""
    if isinstance(event, dict):
        wanted = event["ask"]
        world.ask(**wanted | ({"nodes": tuple(wanted["nodes"])} if "nodes" in wanted else {}))
        return
    verb, *words = event.split()
    match verb:
        case "pass":
            world.pass_by(int(words[0]))
        case "clock":
            world.now = float(words[0])
        case "add":
            world.add(f"i-0000000{len(world.programs)}")
        case "train":
            world.train()
        case "settle":
            world.settle()
        case _:
            play_on_node(world, verb, f"i-0000000{words[0]}", *words[1:])


def play_on_node(world, verb, instance, *words):
    programs, machine = world.programs[instance], world.agents[instance]._node.machine
    match verb:
        case "exit" if (name := f"{world.request.token}-{words[0]}") in programs.running():
            programs.states[name] = int(words[1])
        case "data":
            machine.data(world.request).parent.mkdir(parents=True)
            machine.data(world.request).touch()
        case "notice":
            world.notices[instance] = words[0]
        case "lose":
            world.lose(instance)
        case "reboot":
            world.lose(instance)
            world.crash(instance)
            world.gone.discard(instance)
        case "wipe":
            programs.states.clear()


def outcome(world):
    """Return the state of a run, without empty values."""
    numbers = {instance: int(instance[-1]) for instance in world.programs}
    end = world.end()
    statuses = {numbers[each]: status for each in numbers if (status := world.status(each))}
    values = {
        "attempts": [
            f"{' '.join(str(numbers[each]) for each in made.instances)}: {made.why}".removesuffix(": ")
            for made in world.attempts()
        ],
        "phases": world.phases(),
        "run": {numbers[each]: named(programs.running()) for each, programs in world.programs.items()},
        "asked to stop": {numbers[each]: named(programs.stopped) for each, programs in world.programs.items()},
        "wrong": [number for number, status in statuses.items() if status.trouble],
        "off": [numbers[each] for each in sorted(world.gone)],
        "end": end.outcome if end else "",
    }
    filled = {
        name: {number: what for number, what in value.items() if what} if isinstance(value, dict) else value
        for name, value in values.items()
    }
    return {name: value for name, value in filled.items() if value}


def named(programs):
    return sorted(name.partition("-")[2] for name in programs)


@pytest.mark.parametrize("row", [pytest.param(row, id=group["about"]) for group in TABLE for row in group["rows"]])
def test_a_run_after_these_events_has_this_outcome(row, tmp_path, messages):
    world = World(tmp_path, request(**row.get("request", {})))
    for event in flat(row["events"]):
        play(world, event)
    assert outcome(world) == row["outcome"]
    troubles = [status.trouble for status in map(world.status, world.programs) if status]
    for sentence in filter(None, [*troubles, world.end() and world.end().error]):
        messages.check(sentence)


def test_a_replacement_node_keeps_the_log_of_the_lost_node(world):
    def prints(instance, name, text):
        folder = world.agents[instance]._node.machine.logs(world.request)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    world.train()
    prints(FIRST, "node-0.log", "of the first")
    world.pass_by(10)
    world.lose(FIRST)
    world.pass_by(60)
    world.programs[SECOND].states["0a1b2c3d-1/train"] = 143
    world.train()
    prints(SECOND, "node-0-attempt-2.log", "of the second")
    world.settle()
    logs = [world.channel.read(f"runs/{RUN}/{name}") for name in ("node-0.log", "node-0-attempt-2.log")]
    assert [log and log.text for log in logs] == ["of the first", "of the second"]


EVENTS = st.tuples(
    st.sampled_from(
        [*["tick"] * 3, "crash", "stage", "train", "reader", "fail", "stop", "lose", "pass", "join", "cut", "mend"]
    ),
    st.integers(0, 3),
)
MAX_NODES = 5


def happen(world, event, instance):
    running = [] if instance in world.gone else world.programs[instance].running()
    match event:
        case "tick":
            before = world.started("train")
            world.tick(instance)
            if world.started("train") != before:
                name = f"{world.latest.name}/stage"
                ended = [world.programs[each].states.get(name) for each in world.latest.instances]
                assert ended == [0] * len(ended)
        case "pass":
            world.pass_by(20)
        case "crash":
            world.crash(instance)
        case "stop":
            world.ask(stop=True)
        case "fail" if running:
            world.programs[instance].states[running[0]] = 1
        case "stage" | "train":
            world.finish(instance, event)
        case _:
            change_nodes(world, event, instance)


def change_nodes(world, event, instance):
    others = world.programs.keys() - {instance} - world.gone
    match event:
        case "lose" if any(world.agents[each]._node.member.gpus for each in others):
            world.lose(instance)
        case "join" if len(world.programs) < MAX_NODES:
            world.add(f"i-0000000{len(world.programs)}")
        case "cut":
            world.cut.add(instance)
        case "mend":
            world.cut.discard(instance)


@given(st.lists(EVENTS, max_size=60), st.sampled_from(["efs", None]), st.integers(0, 1))
def test_attempts_start_together_and_the_run_ends_after_any_order_of_events(events, share, readers):
    share = "efs" if readers else share
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), request(readers=readers, share=share))
        failed = stopped = False
        for event, number in events:
            instance = list(world.programs)[number % len(world.programs)]
            running = [] if instance in world.gone else world.programs[instance].running()
            failed |= event == "fail" and bool(running) and "reader" not in running[0]
            stopped |= event == "stop"
            happen(world, event, instance)
        world.cut.clear()
        for _ in range(8):
            world.settle()
        end = world.end()
        assert not any(each.running() for each in world.programs.values())
        if not failed:
            assert end.outcome == ("stopped" if stopped else "finished"), end
