"""Answers of a host's agent are validated, and agents without heartbeats are restarted."""

import json
from itertools import pairwise
from types import SimpleNamespace

import pytest

from common import names
from common.errors import ShoalError
from common.progress import reporting
from shoal.backends import hosts


def test_a_silent_agent_is_restarted_after_pauses_that_double_up_to_five_minutes(monkeypatch):
    clock, tags, restarts, notes = [0.0], ["first"], [], []

    def start_agent(_):
        restarts.append(clock[0])
        raise ShoalError("host a does not answer")

    def list_nodes(_):
        return {names.heartbeat_key("a"): SimpleNamespace(tag=tags[-1])}

    def pauses_within(seconds):
        restarts[:] = [clock[0]]
        for _ in range(seconds):
            with reporting(SimpleNamespace(note=notes.append)):
                hosts.HostsBackend.look_at_nodes(backend)
            clock[0] += 1
        return [after - before - 1 for before, after in pairwise(restarts)]

    monkeypatch.setattr(hosts, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    backend = SimpleNamespace(
        requests=SimpleNamespace(store=SimpleNamespace(list=list_nodes)),
        file=SimpleNamespace(hosts=[SimpleNamespace(instance="a")]),
        hosts=SimpleNamespace(connect=lambda host: host),
        start_agent=start_agent,
        _heartbeats={},
    )
    assert pauses_within(1200) == [8, 16, 32, 64, 128, 256, 300, 300]
    assert len(notes) == 1
    tags.append("second")
    assert pauses_within(30) == [8, 16]
    assert len(notes) == 2


@pytest.mark.parametrize(
    "answer",
    [{"missing": ["torch"]}, {"missing": 5}, {"missing": {"torch": 1}}, {"works": 1}, {"unable": 7}],
    ids=json.dumps,
)
def test_a_malformed_answer_of_an_agent_is_reported(answer, messages):
    host = SimpleNamespace(label="host a", gpus=0, python="/python", instance="a")
    connection = SimpleNamespace(host=host, address="10.0.0.1", run=lambda _: (0, json.dumps(answer), ""))
    backend = SimpleNamespace(
        requests=SimpleNamespace(store=SimpleNamespace(name="the-store")),
        _code=SimpleNamespace(install=lambda _: "/code"),
        file=SimpleNamespace(path="hosts"),
    )
    with messages.raises(ShoalError):
        hosts.HostsBackend._call_agent(backend, "", connection)
