"""Start of the program that copies a run's data to this node (bootstrap/node/stage.py)."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bootstrap.node.assignment import STAGE, Assignment
from bootstrap.node.documents import RunRequest
from bootstrap.node.machine import Node
from bootstrap.node.processes import Restarts
from bootstrap.node.uploads import Results
from common.errors import DataError
from common.files import DOCUMENT_BYTES, read_regular
from corpus.raw_texts import TextProgress
from trainer.output.run_files import CHECKPOINT_PATTERN, CHECKPOINTS, RECORD

_PROGRESS = "progress.json"


def begin_staging(assignment: Assignment, results: Results, *, first_is_staged: bool) -> bool:
    """Start the program, once the first node has everything that this node needs. Return True if this node has all data
    already.

    With a shared folder, the first node copies the data before all other nodes do. Without a shared folder, the first
    node first copies the results of an earlier attempt to the store.
    """
    request, attempt, machine = assignment.request, assignment.attempt, assignment.node.machine
    shares = request.share is not None
    if assignment.is_first:
        machine.serve(request, attempt)
        if assignment.folder.exists() and not shares and not results.is_copied():
            return False
    elif first_is_staged or (attempt.number == 1 and not shares):
        machine.mount(request, attempt.members[0])
        if not shares:  # an earlier attempt can have written checkpoints here that the other nodes do not have
            for path in (assignment.folder / CHECKPOINTS).glob(CHECKPOINT_PATTERN):
                path.unlink()
    else:
        return False
    can_continue = attempt.number > 1 and shares and request.stream is None
    if can_continue and (assignment.folder / RECORD).exists() and assignment.data.exists():
        return True
    assignment.start(STAGE, _arguments(request, assignment.programs_folder, assignment.node.channel.name), {})
    return False


def staging_progress(assignment: Assignment) -> Mapping[str, Any]:
    """Return the fields of the node's status that state the progress of reading texts. Return no fields before the
    program has written its progress."""
    with suppress(OSError, DataError):
        return vars(TextProgress.from_json(read_regular(assignment.programs_folder / _PROGRESS, DOCUMENT_BYTES)))
    return {}


class EarlyStaging:
    """Copying of the dataset to this node's own disk before the node joins an attempt. The other nodes train without
    this node until the copy is complete."""

    def __init__(self, request: RunRequest, node: Node) -> None:
        self._request, self._node = request, node
        self.folder = f"{request.token}-0"
        """Name of the folder with the state of the program."""
        self._restarts = Restarts()

    def has_dataset(self) -> bool:
        """Return whether the dataset is on the node's own disk, or is not needed there. If the dataset is missing,
        start to copy it."""
        request, machine, processes = self._request, self._node.machine, self._node.processes
        own_disk = request.share is None or machine.disks is not None
        if request.dataset is None or not own_disk or machine.data(request).exists():
            return True
        name = f"{self.folder}/{STAGE}"
        state = processes.state(name)
        if state not in (None, 0, "running") and self._restarts.may_restart(0):
            processes.forget(name)
            state = None
        if state is None:
            folder = machine.programs / self.folder
            arguments = _arguments(request, folder, self._node.channel.name, "--ahead")
            processes.start(name, arguments, folder / "stage.log", {})
        return False

    @property
    def trouble(self) -> str:
        """Problem that prevents the copy, or an empty string."""
        return (
            f"it cannot copy the dataset; see {self.folder}/stage.log on the node" if self._restarts.exhausted else ""
        )


def _arguments(request: RunRequest, folder: Path, store: str, *more: str) -> list[str]:
    """Write the request to a folder, and return the arguments of the program."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "request.json").write_text(request.to_json(), "utf-8")
    places = (str(folder / "request.json"), store, str(folder / _PROGRESS))
    return ["-m", "bootstrap.node.stage", *places, *more]
