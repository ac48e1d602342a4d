"""Start of the agent: on a node, from the environment; on a host, unless another agent runs there."""

import json
import sys

import pytest

from bootstrap.node import __main__ as on_node
from bootstrap.node import host
from bootstrap.node.node_documents import Member


def test_a_node_configures_its_agent_from_the_environment(monkeypatch):
    served = []
    monkeypatch.setattr(on_node, "serve", lambda *places, **named: served.append((places, named)))
    names = ("DEPLOYMENT", "DATA_BUCKET", "INSTANCE_ID", "ADDRESS", "RANKS", "HEARTBEAT_SECONDS")
    for name, value in zip(names, ("demo", "data", "i-00000000", "10.0.0.1", "4", "2"), strict=True):
        monkeypatch.setenv(name, value)
    on_node.main()
    (((group, member), named),) = served
    assert (group, member) == ("demo", Member(instance="i-00000000", address="10.0.0.1", gpus=4))
    assert (named["store"], named["activity_seconds"]) == ("s3://data", 2.0)


@pytest.mark.parametrize(
    ("runs", "busy", "owner", "ends", "answer", "starts"),
    [
        (False, False, None, True, (False, None), True),
        (True, False, "mine", True, (False, None), False),
        (True, True, "mine", True, (True, None), False),
        (True, False, "other", True, (False, None), True),
        (True, False, "other", False, (True, "other"), False),
        (True, True, "other", True, (True, "other"), False),
    ],
)
def test_an_agent_starts_if_none_runs_or_an_idle_one_with_other_code_ends(
    runs, busy, owner, ends, answer, starts, tmp_path, monkeypatch, capsys
):
    options = ["--group=g", "--store=mine", "--instance=h", "--address=10.0.0.1", "--gpus=2"]
    own = {"store": "mine", "address": "10.0.0.1", "gpus": 2, "code": "/code", "python": sys.executable}
    forked = []
    for name, value in {"HOME": str(tmp_path), "NODE_ROOT": "", "PYTHONPATH": "/code"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["host", *options])
    monkeypatch.setattr(host, "_try_lock", lambda _: not runs)
    monkeypatch.setattr(host, "_description", lambda _: {**own, "store": owner, "busy": busy, "process": 7})
    monkeypatch.setattr(host, "_has_ended", lambda process, _: process == 7 and ends)
    monkeypatch.setattr(host.os, "fork", lambda: forked.append(1) or 7)
    assert host.main() == 0
    assert json.loads(capsys.readouterr().out) == {"gpus": 2, "works": answer[0], "other": answer[1]}
    assert bool(forked) is starts
