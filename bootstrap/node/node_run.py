"""One attempt of a run on one node: its phases, from copying the data to copying the results.

`step` never blocks, because slow operations run as separate programs. A restarted agent can reconstruct the state from
the node's programs, its files and the statuses of the nodes.

If one node fails, all other nodes stop with a checkpoint. If they continued, ranks would wait forever for a lost rank,
or the model would not learn from the text of a lost reader.
"""

import shutil
import signal
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from bootstrap.node import documents
from bootstrap.node.documents import RunRequest
from bootstrap.node.machine import Node, device_of
from bootstrap.node.node_documents import Attempt, Member, NodeStatus
from bootstrap.node.processes import Restarts
from bootstrap.node.progress import RecordedProgress
from bootstrap.node.uploads import Uploads
from common import names
from common.errors import DataError, TrainingError
from common.files import DOCUMENT_BYTES, read_regular, read_tail
from corpus.stream.parts import part_numbers
from corpus.stream.progress import STATUS_NAME, reader_folder
from corpus.text_request import TextProgress
from trainer.command_line import as_arguments, from_option_values
from trainer.config import NEEDS_GPU, TrainConfig
from trainer.distributed import failures
from trainer.output.run_files import CHECKPOINT_PATTERN, CHECKPOINTS, RECORD, SUMMARY, read_json
from trainer.rank_processes import OPTIONS, STOP_SECONDS

_UPLOAD_SECONDS = 5.0
_PROGRESS_SECONDS = 30.0
_STAGE, _TRAIN, _READER = "stage", "train", "reader-"
_LOG_TAIL_BYTES = 4096
_ENDED = ("lost", -signal.SIGTERM, 128 + signal.SIGTERM)
"""States of programs that another process stopped, for example when the machine shuts down."""

Statuses = Mapping[str, NodeStatus]
"""Statuses of an attempt's other nodes, by instance id. A node that has not reported a status is missing."""


class NodeRun:
    def __init__(self, request: RunRequest, attempt: Attempt, node: Node, reported: NodeStatus | None) -> None:
        """`reported` is the status that an earlier agent reported for the same attempt."""
        (me,) = (each for each in attempt.members if each.instance == node.instance)
        self.attempt = attempt
        self._request, self._me, self._store = request, me, node.store
        self._machine, self._processes, self._channel = node.machine, node.processes, node.channel
        self._clock, self._pool, self._say = node.clock, node.pool, node.say
        self.status = reported or NodeStatus(
            token=attempt.token, phase="stage", attempt=attempt.number, address=me.address, gpus=me.gpus
        )
        self._folder = node.machine.run(request)
        folder = node.machine.programs / attempt.name
        self._meeting_file = folder / "meeting"
        newer = names.attempt_key(request.run, attempt.number + 1)
        self._uploads = Uploads(self._folder, node.channel, f"{names.RUNS}{request.run}/", newer)
        self._uploading: Future[None] | None = None
        self._earlier_results: Future[None] | None = None
        """Background task that copies the results that an earlier attempt left on this node."""
        self._last_upload: Future[None] | None = None
        """Background task that copies the results at the end of this attempt."""
        self._upload_started = -_UPLOAD_SECONDS
        self._progress = RecordedProgress(self._folder, node.clock)
        self._progress_reported = -_PROGRESS_SECONDS
        self._restarts = {reader: Restarts() for reader in attempt.readers_on(me.instance, request)}
        self._stop_requested: dict[str, float] = {}
        """For each program, the time at which it was first asked to stop."""

    def step(self, request: RunRequest, statuses: Statuses, *, leaves: str = "") -> None:
        """Advance the current phase as far as possible without blocking.

        `request` can differ from the request of earlier calls only in `stop`. `leaves` is as in `NodeStatus.leaves`.
        """
        self._request = request
        self.status = replace(self.status, leaves=leaves)
        try:
            if self.status.phase == "stage":
                self._stage_data(statuses)
            elif self.status.phase == "staged":
                self._wait_for_others(statuses)
            elif self.status.phase == "run":
                self._watch(statuses)
            elif self.status.phase == "end":
                self._end(statuses)
        except (DataError, TrainingError, OSError) as error:
            self._fail(str(error))

    # Phases

    def _stage_data(self, statuses: Statuses) -> None:
        state = self._processes.state(self._name(_STAGE))
        if state == "running":
            self._report_text_progress()
            if self._must_stop(statuses):
                self._stop(_STAGE)
        elif state is not None:
            self._report_text_progress()
            if state == 0:
                self._enter("staged")
            elif state in _ENDED and not self._must_stop(statuses):
                self.status = replace(self.status, phase="end", lost=True)
            elif self._must_stop(statuses):
                self._enter("end")
            else:
                raise DataError(self._last_line(self._log(_STAGE)))
        elif self._must_stop(statuses):
            self._enter("end")
        else:
            self._begin_staging(statuses)

    def _begin_staging(self, statuses: Statuses) -> None:
        """Start copying the data, once the first node has everything that this node needs.

        With a shared folder, the first node copies the data before all other nodes do. Without a shared folder, the
        first node first copies the results of an earlier attempt to the bucket.
        """
        first, shares = self.attempt.members[0], self._request.share is not None
        if self._me == first:
            self._machine.serve(self._request, self.attempt)
            if self._folder.exists() and not shares:
                self._earlier_results = self._earlier_results or self._pool.submit(self._sync)
                if not self._earlier_results.done():
                    return
                self._earlier_results.result()
            self._start_staging()
        elif (not shares and self.attempt.number == 1) or _has_reached(statuses, first, "staged"):
            self._machine.mount(self._request, first)
            if not shares:
                self._remove_checkpoints()
            self._start_staging()

    def _wait_for_others(self, statuses: Statuses) -> None:
        if self._must_stop(statuses):
            self._enter("end")
        elif all(_has_reached(statuses, each, "staged") for each in self.attempt.members if each != self._me):
            for folder in (self._folder, self._machine.logs(self._request)):
                folder.mkdir(parents=True, exist_ok=True)
            if self._me.gpus and self._processes.state(self._name(_TRAIN)) is None:
                self._start(_TRAIN, self._training(), self._environment())
            for reader in self._restarts:
                if self._processes.state(self._name(f"{_READER}{reader}")) is None:
                    self._start_reader(reader)
            self._enter("run")

    def _watch(self, statuses: Statuses) -> None:
        """Check whether ranks and readers still run. Readers are asked to stop once all ranks have exited, because a
        stream can be endless."""
        self._upload()
        self._report_progress()
        trains = self._me.gpus and self._check_ranks(statuses)
        others = [each for each in self.attempt.trainers if each != self._me]
        ranks_ended = not trains and all(_has_reached(statuses, each, "end", failed=True) for each in others)
        read = [self._check_reader(reader, stop=ranks_ended) for reader in self._restarts]
        if not trains and not any(read) and (ranks_ended or self._me.gpus):
            self._enter("end")

    def _end(self, statuses: Statuses) -> None:
        """Copy the results. After a finished run, the first node also removes the files that are no longer needed."""
        if self._last_upload is None and self._uploading is not None and not self._uploading.done():
            return
        first = self._me == self.attempt.members[0]
        finished = first and (read_json(self._folder / SUMMARY) or {}).get("stopped") is False
        if finished and self._request.stream is not None and not self._have_readers_ended(statuses):
            return
        self._last_upload = self._last_upload or self._pool.submit(partial(self._sync, last=True))
        if not self._last_upload.done():
            return
        self._last_upload.result()
        if finished:
            folder = f"{names.RUNS}{self._request.run}/{CHECKPOINTS}/"
            for key in self._channel.list(folder):
                self._channel.remove(key)
            if self._request.stream is not None:
                shutil.rmtree(self._machine.data(self._request), ignore_errors=True)
        self._enter("failed" if self.status.fails else "done")

    def _have_readers_ended(self, statuses: Statuses) -> bool:
        """Return whether all readers have ended or have had enough time to end. The caller then removes the readers'
        files."""
        readers = [each.instance for each in self.attempt.members if not each.gpus]
        since = self._stop_requested.setdefault("end", self._clock())
        late = self._clock() - since > 2 * STOP_SECONDS
        return late or all(each in statuses and statuses[each].over for each in readers)

    # Ranks and readers

    def _check_ranks(self, statuses: Statuses) -> bool:
        """Return whether this node's ranks are still running. If this node must stop, ask its ranks to stop."""
        state = self._processes.state(self._name(_TRAIN))
        if state == "running":
            self.status = replace(self.status, waits=self._meeting_file.exists())
            if self._must_stop(statuses):
                self._stop(_TRAIN)
            return True
        if state in _ENDED and _TRAIN not in self._stop_requested and not self._request.stop:
            self.status = replace(self.status, lost=True)  # even if ranks of other nodes failed as a consequence
        elif isinstance(state, int) and state and not self._must_stop(statuses):
            self.status = replace(self.status, ranks=state)
        return False

    def _check_reader(self, reader: int, *, stop: bool) -> bool:
        """Return whether a reader still runs. Restart a reader that died, but only a limited number of times."""
        program = f"{_READER}{reader}"
        state = self._processes.state(self._name(program))
        if state == "running":
            if stop or self.status.fails:
                self._stop(program)
            return True
        if state == 0 or stop or self.status.fails:
            return False
        folder = reader_folder(self._machine.data(self._request), reader)
        last = self._last_line(self._log(program))
        if self._restarts[reader].may_restart(max(part_numbers(folder), default=-1)):
            with suppress(OSError), self._log(program).open("a") as log:
                log.write(f"reader {reader} ended with status {state}, and is started again\n")
            self._processes.forget(self._name(program))
            self._start_reader(reader)
            return True
        self._set_error(f"reader {reader} on the node {self._me.instance} died repeatedly: {last}")
        return False

    def _must_stop(self, statuses: Statuses) -> bool:
        """Return whether this node must stop: on request, because a node failed, or because a node is about to
        terminate."""
        every = (self.status, *statuses.values())
        return self._request.stop or any(each.fails or each.leaves for each in every)

    # Programs

    def _name(self, program: str) -> str:
        return f"{self.attempt.name}/{program}"

    def _start(self, program: str, arguments: list[str], environment: Mapping[str, str]) -> None:
        self._processes.start(self._name(program), arguments, self._log(program), environment)

    def _stop(self, program: str) -> None:
        """Ask a running program to stop, and kill it if it does not stop in time. A program that is still starting is
        asked later."""
        asked = self._stop_requested.get(program)
        if asked is None:
            if self._processes.stop(self._name(program)):
                self._stop_requested[program] = self._clock()
        elif self._clock() - asked > 2 * STOP_SECONDS:
            self._processes.stop(self._name(program), kill=True)

    def _remove_checkpoints(self) -> None:
        """Remove checkpoints from the node's own folder. An earlier attempt can have written checkpoints that the other
        nodes do not have."""
        for path in (self._folder / CHECKPOINTS).glob(CHECKPOINT_PATTERN):
            path.unlink()

    def _start_staging(self) -> None:
        continues = self.attempt.number > 1 and self._request.share is not None and self._request.stream is None
        if continues and (self._folder / RECORD).exists() and self._machine.data(self._request).exists():
            self._enter("staged")  # all needed files exist from an earlier attempt
            return
        program = stage_arguments(self._request, self._machine.programs / self.attempt.name, self._store)
        self._start(_STAGE, program, {})

    def _start_reader(self, reader: int) -> None:
        stream, readers = self._machine.data(self._request), self._request.stream.readers if self._request.stream else 0
        program = ["-m", "corpus.stream", "--stream", str(stream), "--reader", f"{reader}/{readers}"]
        self._start(f"{_READER}{reader}", program, {"OMP_NUM_THREADS": "1"})

    def _training(self) -> list[str]:
        trainers = self.attempt.trainers
        return [
            *("-m", "trainer.launch", f"--nnodes={len(trainers)}", f"--node-rank={trainers.index(self._me)}"),
            *(f"--nproc-per-node={self._me.gpus}", f"--master-addr={trainers[0].address}"),
            *(f"--master-port={self.attempt.port}", *OPTIONS, "-m", "trainer", *as_arguments(self._config())),
        ]

    def _config(self) -> TrainConfig:
        places = {"data": self._machine.data(self._request), "output": self._folder, "cache": self._machine.cache}
        endless = self._request.stream is not None and self._request.stream.follow
        config = from_option_values(self._request.options, endless=endless, **places)
        later = self.attempt.number > 1
        if later:  # the rank that a `slow` option names can be lost
            ranks = sum(each.gpus for each in self.attempt.trainers)
            config = replace(config, slow={rank: slow for rank, slow in config.slow.items() if rank < ranks})
        return replace(config, resume=config.resume or later, force=config.force and not later)

    def _environment(self) -> dict[str, str]:
        # Without this variable, a rank that finds no GPU would compute on the CPU of an expensive GPU node. A node
        # with another root has no GPU.
        needs_gpu = {NEEDS_GPU: "1"} if self._machine.root == Path("/") else {}
        node_environment = {failures.NODE: self._me.instance, failures.MEETING: str(self._meeting_file)}
        if len(self.attempt.trainers) > 1 and (device := device_of(self._me.address)):
            # Gloo binds to the address of the host name. That address can belong to the loopback interface or to
            # Docker's bridge, which other nodes cannot reach (nss-myhostname(8)). NCCL ignores both interfaces by
            # itself.
            node_environment |= {f"{library}_SOCKET_IFNAME": device for library in ("GLOO", "NCCL")}
        return {**node_environment, **needs_gpu}

    # Results

    def _log(self, program: str) -> Path:
        if program == _STAGE:
            return self._machine.programs / self.attempt.name / "stage.log"
        if program == _TRAIN:
            name = names.log_name(f"node-{self.attempt.trainers.index(self._me)}", self.attempt.number)
            return self._machine.logs(self._request) / name
        return self._folder / names.log_name(program, self.attempt.number)

    def _upload(self) -> None:
        """Start to copy changed files in the background, every few seconds."""
        if self._uploading is not None:
            if not self._uploading.done():
                return
            if error := self._uploading.exception():
                self._say(f"the agent could not copy results and tries again: {type(error).__name__}: {error}")
            self._uploading = None
        if self._clock() - self._upload_started >= _UPLOAD_SECONDS:
            self._upload_started = self._clock()
            self._uploading = self._pool.submit(self._sync)

    def _sync(self, *, last: bool = False) -> None:
        if self._me == self.attempt.members[0]:
            finished = last and (read_json(self._folder / SUMMARY) or {}).get("stopped") is False
            self._uploads.sync(lambda name: not (finished and name.startswith(f"{CHECKPOINTS}/")))
        for reader in self._restarts:
            status = reader_folder(self._machine.data(self._request), reader) / STATUS_NAME
            self._uploads.copy(status, f"{_READER}{reader}.json")
        programs = [f"{_READER}{reader}" for reader in self._restarts] + [_TRAIN] * bool(self._me.gpus)
        for log in map(self._log, programs):
            self._uploads.copy(log, log.name)

    def _report_text_progress(self) -> None:
        with suppress(OSError, DataError):
            path = self._machine.programs / self.attempt.name / "progress.json"
            self.status = replace(self.status, **vars(TextProgress.from_json(read_regular(path, DOCUMENT_BYTES))))

    def _report_progress(self) -> None:
        """Report the progress of the ranks, at most every 30 seconds, because each changed status costs one write to
        the bucket."""
        if self._me.gpus and self._clock() - self._progress_reported >= _PROGRESS_SECONDS:
            self._progress_reported = self._clock()
            if self._me == self.attempt.members[0]:  # the shared folder can hang on other nodes
                self._progress.update()
            progress, used = self._progress, self._machine.gpu_use()
            trouble = "; ".join(filter(None, (self._machine.full_disk(), progress.hung)))
            self.status = replace(self.status, starts=progress.attempt, gpu_use=used, trouble=trouble)
            self.status = replace(self.status, step=progress.step, steps=progress.steps, ends=progress.ends)

    def _last_line(self, log: Path) -> str:
        with suppress(OSError):
            lines = [line for line in read_tail(log, _LOG_TAIL_BYTES).splitlines() if line.strip()]
            if lines:
                return lines[-1]
        return "it printed nothing"

    def _enter(self, phase: str) -> None:
        self.status = replace(self.status, phase=phase)

    def _set_error(self, error: str) -> None:
        self.status = replace(self.status, error=error[: documents.MAX_ERROR_LENGTH])

    def _fail(self, error: str) -> None:
        self._set_error(error)
        if self.status.phase != "run":  # in phase `run`, ranks and readers are asked to stop first
            self._enter("failed" if self.status.phase == "end" else "end")


def _has_reached(statuses: Statuses, member: Member, phase: str, *, failed: bool = False) -> bool:
    status = statuses.get(member.instance)
    return status is not None and ((failed and status.phase == "failed") or status.has_reached(phase))


def stage_arguments(request: RunRequest, folder: Path, store: str, *more: str) -> list[str]:
    """Return the arguments of the program that copies a run's data to this node.

    This function writes the request to `folder`, and the program writes its progress there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "request.json").write_text(request.to_json(), "utf-8")
    places = (str(folder / "request.json"), store, str(folder / "progress.json"))
    return ["-m", "bootstrap.node.stage", *places, *more]
