"""Tests of following a run to its end, and of its results."""

from pathlib import Path
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from bootstrap.node.folder import Folder
from common.errors import DataError, ShoalError
from common.progress import reporting
from shoal.interrupt import Detached, Interrupt
from shoal.runs.backend import Backend
from shoal.runs.files import Copied, RunFiles
from shoal.runs.follow import follow
from shoal.runs.run import Run
from shoal.runs.sources.dataset import PreparedDataset
from shoal.runs.sources.source import DataAccess, Staging
from shoal.runs.state import RunState
from shoal.runs.train import carry_out
from shoal.ssh.connection import LostError

RUN = Run(name="demo.1", options={"model": ("linear",)}, data=PreparedDataset("dataset"), output=Path("output"))
COPIES, TRAINS = RunState(phase="running", staging=Staging("copy")), RunState(phase="running", is_independent=True)
ENDED, FAILED = RunState(phase="finished", outcome="finished"), RunState(phase="failed", outcome="failed", error="died")


class Scripted(Backend):
    """Backend with a run that has these states, one after the other. An exception is raised instead."""

    name, data, pause = "scripted", DataAccess, 0

    def __init__(self, folder, *states):
        self.options, self.stops = {"deployment": ("scripted",)}, []
        self._folder, self._states = folder, list(states)

    def start(self, run):
        return run

    def state(self, name):
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        if isinstance(state, BaseException):
            raise state
        return state

    def stop(self, name, *, at_once=False):
        self.stops.append(at_once)

    def files(self, name):
        return RunFiles(store=Folder(self._folder), folder=f"runs/{name}/")


@pytest.fixture
def shown():
    with reporting(Mock()) as reporter:
        yield reporter


@pytest.mark.parametrize("error", [ShoalError("reader 0 died 4 times"), DataError("reader 0")])
def test_the_last_lines_of_the_record_are_shown_even_if_a_reader_fails(error, tmp_path, shown):
    backend = Scripted(tmp_path, TRAINS, error)
    read = Mock(return_value=None)
    backend.files = lambda _: RunFiles(store=Mock(size=read), folder="")
    with pytest.raises(type(error)):
        follow(RUN, backend)
    assert read.call_count == 2


def test_the_first_interrupt_requests_a_stop_and_the_second_ends_the_command(tmp_path, shown):
    first, second = KeyboardInterrupt("first"), KeyboardInterrupt("second")
    backend = Scripted(tmp_path, TRAINS, first, TRAINS, ENDED)
    assert follow(RUN, backend) == (ENDED, first)
    assert backend.stops == [False]
    with pytest.raises(KeyboardInterrupt, match="second"):
        follow(RUN, Scripted(tmp_path, TRAINS, first, TRAINS, second))


def test_an_interrupt_before_the_ranks_have_their_data_ends_the_command(tmp_path, shown):
    backend = Scripted(tmp_path, COPIES, KeyboardInterrupt("first"), COPIES)
    with pytest.raises(KeyboardInterrupt, match="first"):
        follow(RUN, backend)
    assert backend.stops == []


@pytest.mark.parametrize(
    ("state", "options", "why"),
    [
        pytest.param(KeyboardInterrupt(), {"attached": True}, None, id="of another command"),
        pytest.param(Interrupt(1), {}, None, id="closed terminal"),
        pytest.param(TRAINS, {"detach": True}, None, id="detach"),
        pytest.param(LostError("no host answers"), {}, "no host answers; the run continues", id="lost hosts"),
        pytest.param(ClientError({"Error": {"Code": "ExpiredToken"}}, "GetObject"), {}, "AWS no longer", id="expired"),
    ],
)
def test_a_command_leaves_a_run_that_continues(state, options, why, tmp_path, shown):
    with pytest.raises(Detached, match=why):
        follow(RUN, Scripted(tmp_path, COPIES, state), **options)


def test_a_run_that_does_not_stop_in_time_is_an_error(tmp_path, shown):
    backend = Scripted(tmp_path, TRAINS, KeyboardInterrupt(), TRAINS)
    backend.longest_stop = -1
    with pytest.raises(ShoalError, match=r"did not stop in time, .*runs/demo\.1/$"):
        follow(RUN, backend)


def test_a_note_is_shown_once_and_a_stage_until_the_ranks_have_their_data(tmp_path, shown):
    noted = RunState(phase="running", staging=Staging("copy", 10, "B"), bytes_read=4, notes=["one"])
    follow(RUN, Scripted(tmp_path, noted, noted, TRAINS, ENDED))
    shown.note.assert_called_once_with("one")
    assert [call.args[0] for call in shown.stage.call_args_list] == ["copy", "start the ranks"]
    shown.at.assert_called_with(4)


def carried_out(backend, output, **options):
    return carry_out(Run(name="demo.1", options=RUN.options, data=RUN.data, output=output), backend, **options)


def test_files_that_were_not_fetched_are_noted_also_if_a_run_that_has_a_summary_fails(tmp_path, shown):
    backend = Scripted(tmp_path, FAILED)
    copied = Copied(output=tmp_path, source="s3://bucket/runs/demo.1/", refused=["x"])
    vars(copied)["summary"] = {"stopped": True}
    backend.files = lambda _: Mock(store=Folder(tmp_path), record_key="x", known=None, copy=lambda _: copied)
    with pytest.raises(ShoalError, match="died"):
        carried_out(backend, tmp_path)
    shown.note.assert_called_once_with("not fetched: x")
    assert backend.stops == [False]  # what the ended run still costs ends


@pytest.mark.parametrize(("attached", "stops"), [(False, [True]), (True, [])])
def test_only_the_command_that_started_a_run_ends_it_after_an_error(attached, stops, tmp_path, shown):
    backend = Scripted(tmp_path, TRAINS, ShoalError("no node is left"))
    with pytest.raises(ShoalError, match="no node is left"):
        carried_out(backend, tmp_path, attached=attached)
    assert backend.stops == stops


@pytest.mark.parametrize("again", [KeyboardInterrupt(), ShoalError("AWS refuses")], ids=["interrupt", "refusal"])
def test_a_run_that_could_not_be_ended_after_an_interrupt_is_reported(again, tmp_path, shown):
    backend = Scripted(tmp_path, COPIES, KeyboardInterrupt("first"))
    backend.stop = Mock(side_effect=again)
    with pytest.raises(KeyboardInterrupt, match="first"):
        carried_out(backend, tmp_path)
    shown.note.assert_called_with("the run demo.1 may continue; to stop it: shoal stop scripted")


def test_an_error_after_the_end_leaves_the_results_to_the_next_command(tmp_path, shown):
    backend = Scripted(tmp_path, ENDED)
    backend.stop = Mock(side_effect=ShoalError("AWS refuses"))
    with pytest.raises(ShoalError, match="AWS refuses"):
        carried_out(backend, tmp_path)
    backend.stop.assert_called_once_with("demo.1")


def test_a_run_with_an_invalid_summary_does_not_count_as_copied(tmp_path):
    (tmp_path / "runs" / "demo.20260102T030405-0a1b").mkdir(parents=True)
    (tmp_path / "runs" / "demo.20260102T030405-0a1b" / "summary.json").write_text("{}")
    copied = []
    files = RunFiles(store=Folder(tmp_path), folder="runs/demo.20260102T030405-0a1b/", on_copied=copied.append)
    with pytest.raises(ShoalError):
        files.copy(tmp_path / "out")
    assert copied == []
