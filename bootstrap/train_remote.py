"""Training on a deployment's GPU nodes: raise them, start a rank a GPU, follow the record, fetch results, lower them.

The easy mistake is to let a failure in between leave nodes that cost money: they are raised and lowered by one
context, and what fails inside it is reported after they are on their way down.
"""

import math
import random
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import filterfalse
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap import fleet, names, objects, shared_folder
from bootstrap.deployment import Deployment
from bootstrap.errors import ShoalError
from bootstrap.fleet import Node
from bootstrap.interrupt import hear, name_of
from bootstrap.objects import Place
from bootstrap.patience import Left, patiently
from bootstrap.progress import Bars
from bootstrap.raising import raised
from bootstrap.remote import Command, State
from bootstrap.run_scripts import Run
from bootstrap.spending import Spending
from bootstrap.tensorboard import FOLDER, Board
from bootstrap.train import STOP_SECONDS, failure, read_summary
from bootstrap.watch import RunView
from corpus.dataset import open_dataset
from corpus.layout import DATASET_NAME
from corpus.reading.s3 import is_s3
from corpus.shown import printable
from infra import topology
from trainer.config import TrainConfig
from trainer.errors import TrainingError
from trainer.files import MODEL, RECORD, SUMMARY, require_free, was_stopped

_PAUSE_SECONDS = 1.0
_LOOK_AT_NODES_SECONDS = 15
# A run whose record grew within this time is taken for one that goes on.
_ALIVE = timedelta(minutes=2)
_PORTS = range(20_000, 30_000)


def train_on(
    deployment: Deployment, config: TrainConfig, *, dataset: str | None, output: Path, bars: Bars
) -> dict[str, Any]:
    """Train on all GPU nodes of a deployment and copy the results to `output`.

    Returns what summary.json says, with the nodes, the run's folder, where prices are known its cost in dollars, and
    in `refused` a sentence for each object of the run's folder that is no file a run writes, or can be none in
    `output`. `dataset` is an s3:// address, a file here, or None for the newest that was made in the deployment. With
    `config.resume` the newest run that did not end goes on. Ctrl-C and SIGTERM stop the run with a checkpoint, fetch
    what there is, and lower the nodes; then `stopped` is true, and `stopped_by` the signal's name. Raises
    TrainingError, and ShoalError also when another training uses the nodes.
    """
    _require_free(config, output)
    _refuse_beside_another(deployment)
    place = _dataset(deployment, dataset, bars)
    name = _unfinished(deployment, bars) if config.resume else _new_name(deployment)
    run = Run(
        name=name,
        dataset=place,
        bucket=deployment.output(topology.OUTPUT_DATA_BUCKET),
        region=str(deployment.session.region_name),
        lasting=deployment.share == "efs",
    )
    began = datetime.now(UTC)
    with raised(deployment, bars) as nodes:
        spending = Spending(nodes, region=run.region, since=began)
        _stage(deployment, nodes, run, bars)
        with Board(output / FOLDER) as board:
            asked = _train(deployment, nodes, run, config, RunView(bars, board, spent=spending.so_far), bars)
    cost = spending.so_far()
    fetched, refused = objects.download(deployment.session.client("s3"), run.folder, output, check=names.result)
    summary = read_summary(output) if output / SUMMARY in fetched else None
    if asked and summary is None:
        bars.note(f"stopped before there was anything to keep; the logs are in {output}")
        raise asked
    if summary is None or (not asked and summary["stopped"]):
        for sentence in refused:
            bars.note(f"not fetched: {sentence}")
        logs = [output / f"node-{rank}.log" for rank in range(len(nodes))]  # others are of a start on more nodes
        said = "\n".join(path.read_text("utf-8", "replace") for path in logs if path in fetched)
        failed = failure(said, f"the logs are in {output}")
        raise type(failed)(re.sub(rf"\S*{re.escape(run.file)}", str(run.dataset), str(failed)))
    return {
        **summary,
        **({"stopped_by": name_of(asked)} if asked and summary["stopped"] else {}),
        "nodes": [vars(node) for node in nodes],
        "run": str(run.folder),
        "cost": cost,
        "refused": refused,
    }


def _require_free(config: TrainConfig, output: Path) -> None:
    """Raise TrainingError where what the run brings would take the place of a finished model, unless that is forced."""
    if not config.resume:
        require_free(output, force=config.force)
    elif (output / MODEL).exists() and not was_stopped(output):
        raise TrainingError(
            f"{output / MODEL} is a finished model, and what goes on would take its place; choose another --output"
        )


def _names_prefix(deployment: Deployment) -> str:
    """How the names of its runs begin: a bucket of one's own may hold those of several deployments."""
    return f"{deployment.name}."


def _new_name(deployment: Deployment) -> str:
    """In order of time, and different for two that start at once."""
    return f"{_names_prefix(deployment)}{datetime.now(UTC):%Y%m%dT%H%M%S}-{random.getrandbits(16):04x}"


def _refuse_beside_another(deployment: Deployment) -> None:
    """Two trainings would lower the nodes under each other."""
    if not any(group.desired for group in fleet.groups(deployment)):
        return
    s3 = deployment.session.client("s3")
    bucket = deployment.output(topology.OUTPUT_DATA_BUCKET)
    runs = f"{topology.RUNS_PREFIX}{_names_prefix(deployment)}"
    for found in objects.listed(s3, Place(bucket, runs)):
        if found["Key"].endswith(RECORD) and datetime.now(UTC) - found["LastModified"] < _ALIVE:
            raise ShoalError(
                f"a training uses the nodes of '{deployment.name}' (s3://{bucket}/{found['Key']} grew just now); "
                "wait for its end, or stop it by Ctrl-C where it was started"
            )


def _unfinished(deployment: Deployment, bars: Bars) -> str:
    """The newest run that did not come to its end. Raises ShoalError when there is none."""
    s3 = deployment.session.client("s3")
    bucket = deployment.output(topology.OUTPUT_DATA_BUCKET)
    keys = objects.sizes(s3, Place(bucket, f"{topology.RUNS_PREFIX}{_names_prefix(deployment)}"))
    found = {key.removeprefix(topology.RUNS_PREFIX).partition("/")[0] for key in keys}
    if others := sorted(filterfalse(names.is_run, found)):
        bars.note(f"left out, as Shoal names no run so: {', '.join(map(printable, others))}")
    for name in sorted(filter(names.is_run, found), reverse=True):
        summary = objects.read_text(s3, Place(bucket, f"{topology.RUNS_PREFIX}{name}/{SUMMARY}"))
        if summary is None or '"stopped": true' in summary:
            return name
    raise ShoalError(f"no training of '{deployment.name}' was stopped; leave out --resume to start one")


def _dataset(deployment: Deployment, dataset: str | None, bars: Bars) -> Place:
    """Where the dataset is in S3. Raises ShoalError when there is none."""
    s3 = deployment.session.client("s3")
    bucket = deployment.output(topology.OUTPUT_DATA_BUCKET)
    if dataset is None:
        below = objects.listed(s3, Place(bucket, topology.DATASETS_PREFIX))
        found = [each for each in below if each["Key"].endswith(DATASET_NAME)]
        made = [each for each in found if names.is_dataset(each["Key"])]
        if len(made) < len(found):
            others = sorted(filterfalse(names.is_dataset, (each["Key"] for each in found)))
            bars.note(f"left out, as Shoal names no dataset so: {', '.join(map(printable, others))}")
        if not made:
            raise ShoalError(
                f"the deployment '{deployment.name}' has no dataset yet; make one by: "
                f"shoal preprocess --deployment {deployment.name} --input FILE..."
            )
        return Place(bucket, max(made, key=lambda each: each["LastModified"])["Key"])
    if is_s3(dataset):
        place = deployment.own(dataset)
        names.dataset(place.key)
        if place.key not in objects.sizes(s3, place):
            raise ShoalError(f"there is no dataset at {dataset}; check the address")
        return place
    with open_dataset(dataset) as opened:
        digest = opened.digest
    path = Path(dataset)
    folder = Place(bucket, f"{topology.DATASETS_PREFIX}{digest}/")
    if path.name != DATASET_NAME:
        raise ShoalError(f"a dataset to upload is named {DATASET_NAME}, but this is {path}; rename it")
    return objects.parse(objects.upload(s3, [path], folder, bars)[0])


def _stage(deployment: Deployment, nodes: Sequence[Node], run: Run, bars: Bars) -> None:
    """Copy the dataset to every node that has disks of its own, to the share for the others, to all without one."""
    bars.stage("copy the dataset to the nodes", 0)
    if deployment.share == "nfs":
        shared_folder.serve(deployment.session, nodes)
    for together in (nodes[:1], nodes[1:]) if deployment.share else (nodes,):
        for command in [Command(deployment.session, node.instance_id, run.stage()) for node in together]:
            command.wait()


def _train(
    deployment: Deployment, nodes: Sequence[Node], run: Run, config: TrainConfig, view: RunView, bars: Bars
) -> KeyboardInterrupt | None:
    """Start the ranks and follow them to their end; returns what asked them to stop, if anything did.

    Raises Left when the user does not wait until AWS answers, so that they could be asked.
    """
    record = RemoteRecord(deployment, run, view)
    port = random.choice(_PORTS)  # noqa: S311
    commands = [
        Command(deployment.session, node.instance_id, run.train(nodes, rank, port, config))
        for rank, node in enumerate(nodes)
    ]
    watch = _Watch(deployment, nodes, commands, run, record)
    asked: KeyboardInterrupt | None = None
    while True:
        try:
            if asked:
                if patiently.away:
                    bars.note(_unheard(deployment, run))
                watch.stop()
            while not watch.finished():
                time.sleep(_PAUSE_SECONDS)
            return asked
        except KeyboardInterrupt as interrupt:
            if asked:
                raise (Left(interrupt) if patiently.away else interrupt) from None
            asked = interrupt
            hear(asked)


def _unheard(deployment: Deployment, run: Run) -> str:
    """What to say to who asks ranks to stop while AWS does not answer."""
    return (
        "the ranks are asked to stop as soon as AWS answers; Ctrl-C again leaves at once, and the training goes on: "
        f"`shoal fetch {deployment.name} --run {run.name} --output DIR` brings what it has written"
    )


class RemoteRecord:
    """Follows the record of a run in S3."""

    def __init__(self, deployment: Deployment, run: Run, view: RunView) -> None:
        """Before the run begins: what is there already is of an earlier start."""
        self._s3, self._view = deployment.session.client("s3"), view
        self._place = Place(run.folder.bucket, run.folder.key + RECORD)
        self._known = self._state()

    def look(self) -> None:
        """Show what was added."""
        more = b""
        if (found := self._state()) is not None and found != self._known:
            if found[1] < self._view.offset:
                self._view.begin_again()
            more = patiently(partial(objects.read_from, self._s3, self._place, self._view.offset))
            self._known = found
        self._view.feed(more)

    def _state(self) -> tuple[str, int] | None:
        return patiently(partial(objects.state, self._s3, self._place))


class _Watch:
    """Follows the commands of a run; a node that fails or vanishes ends all, as its ranks would be waited for."""

    def __init__(
        self, deployment: Deployment, nodes: Sequence[Node], commands: Sequence[Command], run: Run, record: RemoteRecord
    ) -> None:
        self._deployment, self._nodes, self._commands, self._run = deployment, nodes, commands, run
        self._record = record
        self._to_ask: list[int] = []
        self._deadline: float | None = None
        self._looked_at = time.monotonic()

    def finished(self) -> bool:
        """Whether all commands have ended. Raises ShoalError when a node is gone, or the ranks will not stop."""
        states = [patiently(command.state) for command in self._commands]
        if all(state.finished for state in states):
            self._record.look()
            return True
        if any(state.finished and not state.succeeded for state in states):
            self.stop()
        self._ask_to_stop(states)
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise ShoalError(
                f"the ranks did not stop in time, so their nodes are ended; what they wrote: {self._run.folder}"
            )
        self._look_at_nodes()
        self._record.look()
        return False

    def stop(self) -> None:
        """Have the ranks that still run end well: a checkpoint, and what there is brought to S3."""
        if self._deadline is None:
            self._deadline = math.inf  # they have time from when they were asked on
            self._to_ask = list(range(len(self._nodes)))

    def _ask_to_stop(self, states: Sequence[State]) -> None:
        """Ask those who are to be asked and have not been; when that is done, their time runs."""
        if not self._to_ask:
            return
        while self._to_ask:
            rank = self._to_ask[0]
            script, node = self._run.stop(rank), self._nodes[rank].instance_id
            # Its node may be what has failed; the others are to be asked all the same.
            with suppress(BotoCoreError, ClientError, ShoalError):
                if not states[rank].finished:
                    patiently(partial(Command, self._deployment.session, node, script, online_seconds=10))
            self._to_ask.pop(0)
        self._deadline = time.monotonic() + 2 * STOP_SECONDS

    def _look_at_nodes(self) -> None:
        if time.monotonic() - self._looked_at < _LOOK_AT_NODES_SECONDS:
            return
        self._looked_at = time.monotonic()
        there = {node.instance_id for node in patiently(partial(fleet.nodes, self._deployment))}
        gone = [f"{node.instance_id} ({node.group})" for node in self._nodes if node.instance_id not in there]
        if gone:
            raise ShoalError(
                f"the node {', '.join(gone)} is gone, and its ranks with it; start again with --resume, "
                "which goes on from the last checkpoint"
            )
