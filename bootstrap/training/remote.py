"""Training on a deployment's GPU nodes: scale up, start a rank a GPU, follow the record, fetch results, scale to zero.

Whatever needs nodes must happen inside `scaled_up`, because otherwise a failure would leave nodes that cost money.
"""

import random
import re
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import filterfalse
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.agent.documents import NodeStatus
from bootstrap.aws import fetched, names, objects
from bootstrap.aws.deployment import Deployment
from bootstrap.errors import ShoalError
from bootstrap.interrupt import name_of
from bootstrap.nodes import fleet
from bootstrap.nodes.fleet import GpuNode, of_role
from bootstrap.nodes.scale_up import scaled_up
from bootstrap.progress import Bars
from bootstrap.training.follow import GO_ON, Statuses, wait_for_data, wait_for_end
from bootstrap.training.node_data import find_data
from bootstrap.training.node_launch import NodeData, NodeLaunch
from bootstrap.training.node_prediction import predict_launch
from bootstrap.training.node_stream import as_before, require_sets, with_sets
from bootstrap.training.outcome import read_summary, write_launch
from bootstrap.training.raw_input import RawTexts
from bootstrap.training.readers import ReadingProgress, read_so_far
from bootstrap.training.run_view import RunView
from bootstrap.training.spending import Spending, Stages
from bootstrap.training.tensorboard import FOLDER, TensorBoardWriter
from corpus.display import printable
from corpus.reading.s3 import Place, list_objects, read_text
from corpus.stream.lines import describe_malformed
from corpus.stream.settings import StreamSettings
from corpus.text_request import TextRequest, describe_left_out
from experiments.forecast.rates import Rates
from infra import topology
from trainer.config import TrainConfig
from trainer.errors import TrainingError
from trainer.output.files import RECORD, SUMMARY, finished_model, require_free_output, was_stopped
from trainer.rank_processes import failure_in

_FILES = r"datasets-[0-9a-f]{32}-dataset\.h5|texts-[0-9a-f]{12}\.h5"
"""The names of datasets on nodes (bootstrap/agent/machine.py)."""
# A run whose record grew within this time counts as running.
_ALIVE = timedelta(minutes=2)


@dataclass(frozen=True, kw_only=True)
class Started:
    """Nodes that run already, and go on after the training, and the name of the run on them."""

    nodes: list[GpuNode]
    name: str


def train_on_deployment(
    deployment: Deployment,
    config: TrainConfig,
    *,
    dataset: str | RawTexts | StreamSettings | None,
    output: Path,
    bars: Bars,
    rates: Rates | None = None,
    started: Started | None = None,
) -> dict[str, Any]:
    """Train on all GPU nodes of a deployment and copy the results to `output`.

    Returns the content of summary.json, with the nodes, those of readers, the run's folder, its cost in dollars (None
    where a price is not known), and in `refused` a sentence for each object of the run's folder that is not fetched:
    its name is none that a run writes, or it cannot be a file in `output`. `dataset` is an s3:// address, a file here,
    None for the deployment's newest one, or texts, whose addresses are then in `inputs`. Of text for words (settings of
    a stream) readers leave the words until the ranks have ended, on the nodes that read, which start, too, or on the
    first that trains; `read` then has what they read. With `config.resume` the newest run that did not end continues.
    Ctrl-C and SIGTERM stop the run with a checkpoint, fetch its files, and end the nodes; then `stopped` is true, and
    `stopped_by` is the signal's name. Raises TrainingError, DataError for texts or a dataset that cannot be used, and
    ShoalError also when another training uses the nodes, or a reader fails for good.

    Before the nodes start it is predicted what the training takes, by `rates` or else by the catalogue; `launch` has
    that, and what it took, unless nobody can tell. On nodes that are `started` nothing is predicted.
    """
    if config.embeddings is not None:
        raise ShoalError(
            "--embeddings goes with --local: the nodes of a deployment cannot read those vectors; train here, or leave "
            "it out"
        )
    _require_free(config, output)
    if started is None:
        require_no_other_training(deployment)
    data = find_data(deployment, dataset, output=output, bars=bars)
    name = started.name if started else _unfinished(deployment, bars) if config.resume else new_name(deployment)
    launch = NodeLaunch(deployment, name)
    text = data if isinstance(data, StreamSettings) else None
    if text:
        require_sets(deployment, config)
        data = text = as_before(launch, text) if config.resume else text
    predicted = None if started else predict_launch(deployment, config, data, rates, bars)
    began = datetime.now(UTC)
    stages = Stages(began)
    with nullcontext(started.nodes) if started else scaled_up(deployment, bars, readers=text is not None) as running:
        spending = Spending(running, region=str(deployment.session.region_name), since=began)
        stages.end("start the nodes", spending.so_far())
        stop_request, statuses = _run(launch, running, with_sets(launch, config, bars), data, stages, spending, bars)
    cost = spending.so_far()
    stages.end("end the nodes", cost)
    read = _what_was_read(launch, text, bars) if text else {}
    files, refused = _fetch(launch, output, bars)
    nodes, reader_nodes = of_role(running, "train"), of_role(running, "read")
    launched: dict[str, Any] = {
        "began": began.timestamp(),
        "seconds": stages.seconds,
        "stages": stages.found,
        "cost": cost,
    }
    launched |= {"predicted": predicted} if predicted else {}
    launched |= {"emulated": True} if deployment.is_emulated else {}
    held, held_to_read = (
        [{**vars(node), "launched": node.launched.isoformat()} for node in found] for found in (nodes, reader_nodes)
    )
    write_launch(output, goes_on=config.resume, where=deployment.name, nodes=held, readers=held_to_read, **launched)
    summary = read_summary(output) if output / SUMMARY in files else None
    if failed := [f"{printable(status.error)}{_where(launch, status)}" for status in statuses.values() if status.error]:
        raise ShoalError(failed[0])
    if stop_request and summary is None:
        bars.note(f"stopped before the first checkpoint, so there is nothing to resume; the logs are in {output}")
        raise stop_request
    if summary is None or (not stop_request and summary["stopped"]):
        for sentence in refused:
            bars.note(f"not fetched: {sentence}")
        # Logs of more nodes are older: the run had them before it was resumed.
        logs = [output / f"node-{rank}.log" for rank in range(len(nodes))]
        raise _failure(launch, output, [path for path in logs if path in files])
    return {
        **summary,
        **({"stopped_by": name_of(stop_request)} if stop_request and summary["stopped"] else {}),
        "nodes": [vars(node) for node in nodes],
        "readers": [vars(node) for node in reader_nodes],
        "run": str(launch.folder),
        **({"inputs": list(dataset.inputs.addresses)} if isinstance(dataset, RawTexts) else {}),
        **read,
        "cost": cost,
        "refused": refused,
        **({"launch": launched} if predicted else {}),
    }


def _run(
    launch: NodeLaunch,
    nodes: Sequence[GpuNode],
    config: TrainConfig,
    data: NodeData,
    stages: Stages,
    spending: Spending,
    bars: Bars,
) -> tuple[KeyboardInterrupt | None, Statuses]:
    """Have the nodes do a run, and follow it to its end; as `wait_for_end`."""
    if isinstance(data, TextRequest):
        bars.stage("read the texts on the nodes", data.plain_bytes, "B")
    else:
        bars.stage("prepare the nodes" if isinstance(data, StreamSettings) else "copy the dataset to the nodes", 0)
    launch.start(nodes, config, data, bars)
    try:
        wait_for_data(launch, nodes, bars)
        stages.end("copy the data", spending.so_far())
        if texts := next(iter(launch.statuses().values())) if isinstance(data, TextRequest) else None:
            for sentence in describe_left_out(lines=texts.lines, malformed=texts.malformed, empty=texts.empty):
                bars.note(sentence)
        bars.stage("read the text" if isinstance(data, StreamSettings) else "start the ranks", 0)
        s3 = launch.deployment.session.client("s3")
        read = ReadingProgress(s3, launch.folder, data.readers) if isinstance(data, StreamSettings) else None
        with TensorBoardWriter(config.output / FOLDER) as board:
            view = RunView(bars, board, spent=spending.so_far, read=read)
            ended = wait_for_end(launch, nodes, view, bars)
    finally:
        with suppress(BotoCoreError, ClientError, ShoalError):
            launch.forget()
    stages.end("train", spending.so_far())
    return ended


def _fetch(launch: NodeLaunch, output: Path, bars: Bars) -> tuple[list[Path], list[str]]:
    """Copy the run's files to `output`, and note that in the bucket; as `objects.download`."""
    s3 = launch.deployment.session.client("s3")
    etags = fetched.etags(s3, launch.folder)
    files, refused = objects.download(s3, launch.folder, output, check=names.result)
    if not refused:
        fetched.mark(s3, launch.bucket, {launch.run: etags}, bars.note)
    return files, refused


def _what_was_read(launch: NodeLaunch, text: StreamSettings, bars: Bars) -> dict[str, Any]:
    """`inputs`, and what was `read` of them."""
    found = read_so_far(launch.deployment.session.client("s3"), launch.folder, text.readers)
    if found.malformed:
        bars.note(f"{describe_malformed(found.malformed, found.lines)}; see reader-N.log")
    return {"inputs": list(text.sources), "read": asdict(found)}


def _where(launch: NodeLaunch, status: NodeStatus) -> str:
    """What follows the sentence of a node that could not go on."""
    return f"; its log is in {launch.folder}{GO_ON}" if status.error.startswith("reader ") else ""


def _failure(launch: NodeLaunch, output: Path, logs: Sequence[Path]) -> Exception:
    """The error of a run that left no model, by its logs, in which what it learns from is a path of a node."""
    log_text = "\n".join(path.read_text("utf-8", "replace") for path in logs)
    failed = failure_in(log_text, f"the logs are in {output}")
    request = launch.request
    source = request.dataset or ("the text" if request.stream else "the dataset of the texts")
    path = rf"\S*/(datasets/({_FILES})|streams/{re.escape(launch.run)}(/[\w-]+)*)"
    return type(failed)(re.sub(path, source, str(failed)))


def _require_free(config: TrainConfig, output: Path) -> None:
    """Raise TrainingError where the run's files would replace a finished model, unless `config.force` allows it."""
    if not config.resume:
        require_free_output(output, force=config.force)
    elif (model := finished_model(output)) and not was_stopped(output):
        raise TrainingError(
            f"{model} is a finished model, which the resumed run would replace; choose another --output"
        )


def _names_prefix(deployment: Deployment) -> str:
    """The prefix of the names of a deployment's runs; several deployments may share a bucket."""
    return f"{deployment.name}."


def new_name(deployment: Deployment) -> str:
    """A name for a run: sorted by time, and different for two runs that start at once."""
    return f"{_names_prefix(deployment)}{datetime.now(UTC):%Y%m%dT%H%M%S}-{random.getrandbits(16):04x}"


def require_no_other_training(deployment: Deployment) -> None:
    """Raise ShoalError while another training uses the nodes: two trainings would end each other's nodes."""
    if not any(group.desired for group in fleet.groups(deployment)):
        return
    s3 = deployment.session.client("s3")
    bucket = deployment.output(topology.OUTPUT_DATA_BUCKET)
    runs = f"{topology.RUNS_PREFIX}{_names_prefix(deployment)}"
    for found in list_objects(s3, Place(bucket, runs)):
        if found["Key"].endswith(RECORD) and datetime.now(UTC) - found["LastModified"] < _ALIVE:
            raise ShoalError(
                f"a training uses the nodes of '{deployment.name}' (s3://{bucket}/{found['Key']} has just grown); "
                "wait until it ends, or stop it by Ctrl-C where it was started"
            )


def _unfinished(deployment: Deployment, bars: Bars) -> str:
    """The newest run that did not end. Raises ShoalError when there is none."""
    s3 = deployment.session.client("s3")
    bucket = deployment.output(topology.OUTPUT_DATA_BUCKET)
    keys = objects.sizes(s3, Place(bucket, f"{topology.RUNS_PREFIX}{_names_prefix(deployment)}"))
    found = {key.removeprefix(topology.RUNS_PREFIX).partition("/")[0] for key in keys}
    if others := sorted(filterfalse(names.is_run, found)):
        bars.note(f"left out, because these are not names of Shoal's runs: {', '.join(map(printable, others))}")
    for name in sorted(filter(names.is_run, found), reverse=True):
        summary = read_text(s3, Place(bucket, f"{topology.RUNS_PREFIX}{name}/{SUMMARY}"))
        if summary is None or '"stopped": true' in summary:
            return name
    raise ShoalError(f"no training of '{deployment.name}' was stopped; leave out --resume to start one")
