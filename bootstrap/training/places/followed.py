"""A run whose ranks are started by agents: it is waited for, followed and stopped by the documents of its launch."""

import re
import signal
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.agent.documents import RUNS, log_name
from bootstrap.agent.node_documents import Attempt, RunEnd
from bootstrap.agent.store import Store, StoredFile, ignore
from bootstrap.aws import fetched, names
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.objects import is_marker
from bootstrap.aws.paths import path_below
from bootstrap.aws.retry import Abandoned, is_credentials_error
from bootstrap.interrupt import Detached, mark_handled, name_of
from bootstrap.progress import Bars
from bootstrap.training.places.launch import Launch, LaunchOptions
from bootstrap.training.places.place import Ended, Run
from bootstrap.training.run_view import RecordView, RunView
from common.display import plural
from common.errors import ShoalError, explain_os_error
from experiments.records.summaries import read_summary
from infra import topology
from trainer.output.run_files import RECORD, SUMMARY
from trainer.rank_processes import STOP_SECONDS, failure_in

_PAUSE_SECONDS = 1.0
LONGEST_STOP_SECONDS = 3 * STOP_SECONDS
"""How long nodes may take to stop: their agents hear of it, their ranks end, or are ended, and results are copied."""
_ANSWER_SECONDS = 120.0
"""How long the agent of a node that is ready may take to tell that it has seen a request."""
GO_ON = "; type the same command with --resume, which continues from the last checkpoint"
_FILES = r"datasets-[0-9a-f]{32}-dataset\.h5|texts-[0-9a-f]{12}\.h5"
"""The names of datasets on nodes (bootstrap/agent/machine.py)."""


@dataclass(frozen=True, kw_only=True)
class Copied:
    """What was copied of a run."""

    output: Path
    files: list[Path] = field(default_factory=list)
    """Those that are there now."""
    tags: dict[str, str] = field(default_factory=dict)
    """Of each in the store, by its name there, as it was before: what changes then was not copied."""
    refused: list[str] = field(default_factory=list)
    """A sentence for each object with a name that Shoal gives to no file of a run."""
    sizes: list[int] = field(default_factory=list)
    """The bytes of those that were not there before."""

    @cached_property
    def summary(self) -> dict[str, Any] | None:
        """The content of the run's summary, if it left one. Raises ShoalError for a summary that is none."""
        return read_summary(self.output) if self.output / SUMMARY in self.files else None


def copy_results(
    store: Store,
    run: str,
    output: Path,
    *,
    into: str = "",
    files: Mapping[str, StoredFile] | None = None,
    skip: bool = False,
    count: Callable[[int], None] = ignore,
) -> Copied:
    """Copy the files of a run to its output.

    `into`: a folder of the output; `files`: by their names, by default all of the run; `skip`: leave those that are
    there with the same size and second of change. A run that has just ended may have written a file twice within a
    second. Raises ShoalError where it cannot write.
    """
    folder, copied = f"{RUNS}{run}/", Copied(output=output)
    if files is None:
        files = {key.removeprefix(folder): found for key, found in store.list(folder).items()}
    for name, found in files.items():
        if is_marker(f"{folder}{name}", found.size):
            continue
        try:
            path = path_below(output, f"{into}{names.result(name)}")
        except ShoalError as error:
            copied.refused.append(str(error))
            continue
        if skip and _is_there(path, found):
            count(found.size)
        else:
            with explain_os_error(ShoalError, f"cannot write {path}", "free some space, or choose another folder"):
                store.get(f"{folder}{name}", path, changed=found.changed, count=count)
            copied.sizes.append(found.size)
        copied.files.append(path)
        copied.tags[name] = found.tag
    return copied


def _is_there(path: Path, file: StoredFile) -> bool:
    return path.is_file() and path.stat().st_size == file.size and int(path.stat().st_mtime) == int(file.changed)


class RemoteRun(Run):
    """A run that can go on without its command, and whose record and results are in a store."""

    survives = True
    wishes: LaunchOptions
    store: Store
    deployment: Deployment | None = None
    """None of hosts."""
    stage = "start the ranks"
    """What the progress bar shows before the first step."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def is_followed(self) -> bool:
        """Whether an earlier command has begun it, so that all of its record is shown."""

    @abstractmethod
    def give_up(self) -> None:
        """Have it end what it does, as nobody waits for its results any more."""

    def why_stopped(self, summary: Mapping[str, Any]) -> str:  # noqa: ARG002
        """Why it was stopped by nobody at this command: a part of a sentence."""
        return "somebody has stopped it"

    @abstractmethod
    def _failure(self, copied: Copied, *, stopped: bool) -> Exception | None:
        """Why it came to no end."""

    def _machines(self) -> Mapping[str, list[dict[str, Any]]]:
        """The `nodes` that train and the `readers`, as its summary shows them; none of a place that costs nothing."""
        return {}

    def left(self) -> Mapping[str, Any]:
        return {"run": self.name, **({"deployment": self.deployment.name} if self.deployment else {})}

    def record(self, bars: Bars) -> RecordView:
        """The record as it grows in the store."""
        bars.stage(self.stage, 0)
        view, key = RunView(bars, spent=self.spent, read=self._reading()), f"{RUNS}{self.name}/{RECORD}"
        return RecordView(view, self.store, key, before=None if self.is_followed else self.store.size(key))

    def _reading(self) -> Callable[[], Any] | None:
        """What readers have done; None without readers."""
        return None

    def collect(self, bars: Bars, *, stopped: bool) -> Ended:
        """Copy the run's files to the output, and note that in the bucket of a deployment."""
        copied = copy_results(self.store, self.name, self.config.output)
        summary = copied.summary
        if self.deployment is not None and not copied.refused:
            bucket = self.deployment.output(topology.OUTPUT_DATA_BUCKET)
            s3 = self.deployment.session.client("s3")
            fetched.record(s3, bucket, {self.name: copied.tags}, bars.note)
        self.give_up()
        if summary is not None and summary["stopped"] and not stopped:
            bars.note(f"the run is stopped, because {self.why_stopped(summary)}")
        machines = self._machines()
        emulated = {"emulated": True} if self.deployment and self.deployment.is_emulated else {}
        return Ended(
            summary=summary,
            failure=self._failure(copied, stopped=stopped),
            told={**machines, "run": f"{self.store.name}/{RUNS}{self.name}/", "refused": copied.refused},
            launch={**machines, **emulated},
        )

    @contextmanager
    def _given_up_after_errors(self) -> Iterator[None]:
        """Have it end after an error, unless the run is left to itself."""
        try:
            yield
        except (Abandoned, Detached):
            raise
        except BaseException:
            if not self.wishes.leave:
                with suppress(BotoCoreError, ClientError, ShoalError):
                    self.give_up()
            raise

    def leaves(self, interrupt: KeyboardInterrupt) -> bool:
        """Whether this interrupt ends the command alone."""
        return self.wishes.leave or name_of(interrupt) == signal.SIGHUP.name

    @contextmanager
    def _left_to_itself(self) -> Iterator[None]:
        """A closed terminal and expired credentials end the command alone: raises Detached."""
        try:
            yield
        except KeyboardInterrupt as interrupt:
            if not self.leaves(interrupt):
                raise
            mark_handled(interrupt)
            raise Detached from None
        except (BotoCoreError, ClientError) as error:
            if not is_credentials_error(error):
                raise
            raise Detached(f"AWS does not accept your credentials any more ({error})") from error


class AgentRun(RemoteRun):
    """A run on nodes with agents, or on hosts."""

    launch: Launch
    look_seconds = 10.0
    """Seconds between two looks at the nodes."""
    _shown: Attempt | None = None
    _looked_at: float | None = None
    _end: RunEnd | None = None
    _deadline: float | None = None

    @property
    def name(self) -> str:
        return self.launch.run

    @property
    def is_followed(self) -> bool:
        return self.launch.found

    def give_up(self) -> None:
        self.launch.forget()

    @abstractmethod
    def look_at_nodes(self, bars: Bars) -> None:
        """Look whether nodes are there. Raises ShoalError where none is left, and none comes."""

    def wait_for_data(self, bars: Bars) -> None:
        """Wait until all nodes have their data, or one cannot get it; the bar shows the texts that all of them have
        read.

        Raises ShoalError for a node that does not answer, and Detached once the nodes have agreed on who does it,
        where the command is to end then.
        """
        launch, since = self.launch, time.monotonic()
        while True:
            self._look(bars)
            statuses, attempt = launch.statuses(), launch.attempt()
            if launch.end() is not None or any(each.over for each in statuses.values()):
                return
            if self.wishes.detach and attempt:
                raise Detached
            if attempt and all(name in statuses and statuses[name].has_reached("staged") for name in attempt.instances):
                return
            silent = [each for each in launch.started if attempt is None and each not in statuses]
            if silent and time.monotonic() - since > _ANSWER_SECONDS:
                raise ShoalError(f"the agent of the node {silent[0]} does not answer; {launch.when_silent}")
            if read := min((each.read for each in statuses.values()), default=0):
                bars.at(read)
            bars.tick()
            time.sleep(_PAUSE_SECONDS)

    def is_over(self, bars: Bars) -> bool:
        """Whether all nodes have ended what they did. Raises ShoalError when no node is left, or they will not stop."""
        self._end = self.launch.end()
        if self._end is None:
            if self._deadline is not None and time.monotonic() > self._deadline:
                raise ShoalError(
                    f"the nodes did not stop in time, so they are ended; what they wrote is in {self.launch.left_in}"
                )
            self._look(bars)
        return self._end is not None

    def stop(self, bars: Bars) -> None:  # noqa: ARG002
        """Have the ranks stop with a checkpoint; then their time begins."""
        if not self.launch.request.stop:
            self.launch.ask_to_stop()
        if self._deadline is None:  # also where a command before this one has asked
            self._deadline = time.monotonic() + LONGEST_STOP_SECONDS

    def _look(self, bars: Bars) -> None:
        """Show a new attempt and, now and then, what is wrong with the nodes. Raises ShoalError where no node is left,
        and none comes."""
        attempt, now = self.launch.attempt(), time.monotonic()
        if self._looked_at is None:
            self._shown, self._looked_at, self._troubles = attempt, now, dict[str, str]()
        if attempt is not None and attempt is not self._shown:
            if attempt.why:
                bars.note(
                    f"{attempt.why}; attempt {attempt.number} continues on {plural(len(attempt.members), 'node')}"
                )
            self._shown = attempt
        if now - self._looked_at < self.look_seconds:
            return
        self._looked_at = now
        for instance, status in self.launch.statuses().items():
            if status.trouble and self._troubles.get(instance) != status.trouble:
                bars.note(f"the node {instance}: {status.trouble}")
            self._troubles[instance] = status.trouble
        self.look_at_nodes(bars)

    def _failure(self, copied: Copied, *, stopped: bool) -> Exception | None:
        """Why a run came to no end, by its nodes, or else by its logs, in which what it learns from is a path of a
        node."""
        end = self._end
        if end is not None and end.error:
            log = f"; its log is in {self.launch.left_in}{GO_ON}" if end.error.startswith("reader ") else ""
            return ShoalError(f"{end.error}{log}")
        was_stopped, summary = end is not None and end.outcome == "stopped", copied.summary
        if was_stopped and summary is None and not stopped:
            return ShoalError(f"run {self.launch.run} was stopped before its first checkpoint; start it again")
        if stopped or was_stopped or (summary is not None and not summary["stopped"]):
            return None
        output, attempt = self.config.output, self.launch.attempt()
        count, number = (len(attempt.trainers), attempt.number) if attempt else (0, 1)
        logs = [output / log_name(f"node-{each}", number) for each in range(count)]
        text = "\n".join(path.read_text("utf-8", "replace") for path in logs if path in copied.files)
        failed = failure_in(text, f"the logs are in {output}")
        on_nodes = rf"\S*/(datasets/({_FILES})|streams/{re.escape(self.launch.run)}(/[\w-]+)*)"
        return type(failed)(re.sub(on_nodes, self.prepared.called, str(failed)))
