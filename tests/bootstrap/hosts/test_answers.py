"""Answers of a host's agent are validated."""

import json
from types import SimpleNamespace

import pytest

from bootstrap.training.places.hosts import HostsRun
from common.errors import ShoalError


@pytest.mark.parametrize(
    "answer",
    [{"missing": ["torch"]}, {"missing": 5}, {"missing": {"torch": 1}}, {"works": 1}, {"unable": 7}],
    ids=json.dumps,
)
def test_a_malformed_answer_of_an_agent_is_reported(answer, messages):
    host = SimpleNamespace(label="host a", gpus=0, python="/python", instance="a")
    connection = SimpleNamespace(host=host, address="10.0.0.1", run=lambda _: (0, json.dumps(answer), ""))
    run = SimpleNamespace(
        store=SimpleNamespace(name="the-store"),
        _code=SimpleNamespace(install=lambda _: "/code"),
        _place=SimpleNamespace(file=SimpleNamespace(path="hosts")),
    )
    with messages.raises(ShoalError):
        HostsRun._call_agent(run, "", connection)
