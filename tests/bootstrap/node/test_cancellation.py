"""The end of a cancelled step's work: first the processes of its command, and then its applications on YARN."""

from unittest.mock import Mock

import psutil

from bootstrap.node import cancellation
from common.errors import DataError
from common.names import step_name

RUN, OTHER = "0123456789ab", "ba9876543210"
LISTED = f"""Total number of applications: 2
application_1_0001\t{step_name(RUN, "encode")}\tMAPREDUCE
application_1_0002\t{step_name(OTHER, "encode")}\tMAPREDUCE
"""


def process(killed, name, *below, gone=False):
    """A process that notes its name when it is killed. A `gone` one has already exited."""

    def children(recursive=False):
        return [each for child in below for each in (child, *(child.children(recursive=True) if recursive else ()))]

    error = psutil.NoSuchProcess(1) if gone else None
    return Mock(children=children, kill=Mock(side_effect=error or (lambda: killed.append(name))))


def test_all_processes_of_a_command_are_killed_before_its_applications_on_yarn(monkeypatch):
    done, listings = [], [LISTED, ""]
    tree = [process(done, "child", process(done, "grandchild")), process(done, "exited", gone=True)]
    command = process(done, "command", *tree, process(done, "last"))

    def call(words):
        if "-list" in words:
            return listings.pop(0)
        done.append(words[2:])
        return ""

    monkeypatch.setattr(psutil, "Process", {7: command}.__getitem__)
    monkeypatch.setattr(cancellation, "call", call)
    cancellation.end_work(Mock(pid=7, wait=lambda: done.append("end")), RUN)
    assert done == ["command", "child", "grandchild", "last", "end", ["-kill", "application_1_0001"]]


def test_an_application_that_yarn_does_not_stop_is_reported(monkeypatch, messages):
    monkeypatch.setattr(psutil, "Process", Mock(return_value=process([], "command")))
    monkeypatch.setattr(cancellation, "call", lambda _: LISTED)
    monkeypatch.setattr(cancellation, "time", Mock(monotonic=Mock(side_effect=[0.0, 119.0, 121.0])))
    with messages.raises(DataError):
        cancellation.end_work(Mock(), RUN)
