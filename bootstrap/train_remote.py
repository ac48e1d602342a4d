"""Training on a deployment's GPU nodes: raise them, start a rank a GPU, follow the record, fetch results, lower them.

The easy mistake is to let a failure in between leave nodes that cost money: they are raised and lowered by one
context, and what fails inside it is reported after they are on their way down.
"""

import random
import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bootstrap import fleet, objects
from bootstrap.deployment import Deployment
from bootstrap.errors import ShoalError
from bootstrap.fleet import Node
from bootstrap.objects import Place
from bootstrap.preprocess import DATASETS_PREFIX
from bootstrap.progress import Bars
from bootstrap.remote import Command
from bootstrap.train import RECORD_NAME, failure, read_summary
from bootstrap.watch import RunView
from corpus.dataset import open_dataset
from infra import topology
from jobs.merge import DATASET_NAME
from jobs.storage import is_s3
from trainer.config import RANK_ENVIRONMENT, TrainConfig, as_arguments

_PAUSE_SECONDS = 1.0
_RECORD_SECONDS = 5
_STOP_SECONDS = 120
_PORTS = range(20_000, 30_000)

# Words that stand in the trainer's arguments for what only a node's shell knows.
_DATA, _OUTPUT = Path("@data@"), Path("@output@")

_STAGE = """\
set -euo pipefail
{head}
[ -e "$data" ] && exit 0
mkdir -p "$(dirname "$data")"
aws s3 cp --only-show-errors {dataset} "$data.$$.partial"
mv "$data.$$.partial" "$data"
"""

_TRAIN = """\
set -uo pipefail
{head}
{environment}
mkdir -p "$run"
log="$run/node-{rank}.log"
bring() {{
    nice -n 19 aws s3 sync --only-show-errors --exclude '*.partial' --exclude 'checkpoints/*' "$run" {destination}
}}
shoal-python -m torch.distributed.run --nnodes={nodes} --node-rank={rank} --nproc-per-node={gpus} \\
    --master-addr={master} --master-port={port} -m trainer {arguments} >"$log" 2>&1 &
training=$!
echo $training >"$run/node-{rank}.pid"
trap 'kill -TERM $training' TERM INT
while kill -0 $training 2>/dev/null; do
    {follow}
    sleep {pause} &
    wait $!
done
wait $training
status=$?
{finish}
exit $status
"""

_STOP = """\
{head}
kill -TERM "$(cat "$run/node-{rank}.pid")"
"""

_HEAD = """\
export PATH="${{NODE_ROOT:-}}/usr/local/bin:$PATH"
data="${{NODE_ROOT:-}}{file}"
run="${{NODE_ROOT:-}}/mnt/share/runs/{run}"\
"""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A training run in the data bucket."""

    name: str
    dataset: Place
    folder: Place

    @property
    def file(self) -> str:
        """The dataset's path on a node, from the share on."""
        return f"/mnt/share/datasets/{self.dataset.key.replace('/', '-')}"

    @property
    def head(self) -> str:
        """The lines with which every script on a node begins: where dataset and results are, on the share."""
        return _HEAD.format(file=self.file, run=self.name)


def train_on(
    deployment: Deployment, config: TrainConfig, *, dataset: str | None, output: Path, bars: Bars
) -> dict[str, Any]:
    """Train on all GPU nodes of a deployment and copy the results to `output`; returns what summary.json says.

    `dataset` is an s3:// address, a file here, or None for the newest that was made in the deployment. Ctrl-C stops
    the run with a checkpoint, fetches what there is, and lowers the nodes. Raises TrainingError and ShoalError.
    """
    place = _dataset(deployment, dataset, bars)
    name = datetime.now(UTC).strftime("%Y%m%dT%H%M%S") + f"-{random.getrandbits(16):04x}"
    bucket = deployment.output(topology.OUTPUT_DATA_BUCKET)
    run = Run(name=name, dataset=place, folder=Place(bucket, f"{topology.RUNS_PREFIX}{name}/"))
    bars.stage("start nodes", sum(group.size for group in fleet.groups(deployment)))
    with fleet.raised(deployment, lambda ready, _: bars.at(ready)) as nodes:
        _stage(deployment, nodes, run, bars)
        stopped = _train(deployment, nodes, run, config, bars)
    fetched = objects.download(deployment.session.client("s3"), run.folder, output)
    summary = read_summary(output) if output / "summary.json" in fetched else None
    if summary is None or (not stopped and summary["stopped"]):
        said = "\n".join(path.read_text("utf-8", "replace") for path in fetched if path.suffix == ".log")
        raise failure(re.sub(rf"\S*{re.escape(run.file)}", str(run.dataset), said), f"the logs are in {output}")
    return {**summary, "nodes": [vars(node) for node in nodes], "run": str(run.folder)}


def _dataset(deployment: Deployment, dataset: str | None, bars: Bars) -> Place:
    """Where the dataset is in S3. Raises ShoalError when there is none."""
    s3 = deployment.session.client("s3")
    bucket = deployment.output(topology.OUTPUT_DATA_BUCKET)
    if dataset is None:
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{DATASETS_PREFIX}/")
        made = [found for page in pages for found in page.get("Contents", ()) if found["Key"].endswith(DATASET_NAME)]
        if not made:
            raise ShoalError(
                f"the deployment '{deployment.name}' has no dataset yet; make one by: "
                f"shoal preprocess --deployment {deployment.name} --input FILE..."
            )
        return Place(bucket, max(made, key=lambda found: found["LastModified"])["Key"])
    if is_s3(dataset):
        place = objects.parse(dataset)
        if place.key not in objects.sizes(s3, place):
            raise ShoalError(f"there is no dataset at {dataset}; check the address")
        return place
    with open_dataset(dataset) as opened:
        digest = opened.digest
    path = Path(dataset)
    folder = Place(bucket, f"{DATASETS_PREFIX}/{digest}/")
    if path.name != DATASET_NAME:
        raise ShoalError(f"a dataset to upload is named {DATASET_NAME}, but this is {path}; rename it")
    return objects.parse(objects.upload(s3, [path], folder, bars)[0])


def _stage(deployment: Deployment, nodes: Sequence[Node], run: Run, bars: Bars) -> None:
    """Copy the dataset to the share once, or to every node where there is no share."""
    bars.stage("copy the dataset to the nodes", 0)
    script = _STAGE.format(head=run.head, dataset=shlex.quote(str(run.dataset)))
    receivers = nodes[:1] if topology.OUTPUT_SHARE_ID in deployment.outputs else nodes
    for command in [Command(deployment.session, node.instance_id, script) for node in receivers]:
        command.wait()


def _train(deployment: Deployment, nodes: Sequence[Node], run: Run, config: TrainConfig, bars: Bars) -> bool:
    """Start the ranks and follow them to their end; returns whether they were asked to stop."""
    port = random.choice(_PORTS)  # noqa: S311
    scripts = [_script(nodes, rank, port, run, config) for rank in range(len(nodes))]
    commands = [
        Command(deployment.session, node.instance_id, script) for node, script in zip(nodes, scripts, strict=True)
    ]
    view = RunView(bars)
    record = Place(run.folder.bucket, run.folder.key + RECORD_NAME)
    s3 = deployment.session.client("s3")
    deadline = None
    interrupted = False
    while True:
        try:
            states = [command.state() for command in commands]
            if all(state.finished for state in states):
                return interrupted
            if deadline is None and any(state.finished and not state.succeeded for state in states):
                # One node's end is every rank's: the others would wait for it until their time-out.
                _stop(deployment, nodes, commands, run)
                deadline = time.monotonic() + _STOP_SECONDS
            if deadline is not None and time.monotonic() > deadline:
                raise ShoalError(f"the ranks did not stop within {_STOP_SECONDS} seconds; their nodes are ended")
            view.update(objects.read_text(s3, record) or "")
            time.sleep(_PAUSE_SECONDS)
        except KeyboardInterrupt:
            if interrupted:
                raise
            interrupted = True
            deadline = time.monotonic() + _STOP_SECONDS
            _stop(deployment, nodes, commands, run)


def _stop(deployment: Deployment, nodes: Sequence[Node], commands: Sequence[Command], run: Run) -> None:
    """Ask the ranks that still run to end well: a checkpoint, and what there is brought to S3."""
    for rank, (node, command) in enumerate(zip(nodes, commands, strict=True)):
        if not command.state().finished:
            Command(deployment.session, node.instance_id, _STOP.format(head=run.head, rank=rank))


def _script(nodes: Sequence[Node], rank: int, port: int, run: Run, config: TrainConfig) -> str:
    """What the node of this rank runs: torchrun in the background, and what it writes brought to S3 meanwhile."""
    arguments = as_arguments(replace(config, data=_DATA, output=_OUTPUT))
    shell = {str(_DATA): '"$data"', str(_OUTPUT): '"$run"'}
    destination = shlex.quote(str(run.folder))
    own_log = f'aws s3 cp --only-show-errors "$log" {destination}'
    return _TRAIN.format(
        head=run.head,
        environment="\n".join(f"export {name}={shlex.quote(value)}" for name, value in RANK_ENVIRONMENT.items()),
        rank=rank,
        nodes=len(nodes),
        gpus=nodes[rank].gpus,
        master=nodes[0].address,
        port=port,
        arguments=" ".join(shell.get(argument) or shlex.quote(argument) for argument in arguments),
        destination=destination,
        follow="bring" if rank == 0 else ":",
        finish="bring" if rank == 0 else own_log,
        pause=_RECORD_SECONDS,
    )
