"""A deployment's GPU nodes: scaled up, asked for a rank a GPU, followed by their statuses, and scaled to zero.

Whatever needs nodes must happen inside `resources`, because otherwise a failure would leave nodes that cost money.
"""

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from itertools import filterfalse
from pathlib import Path
from typing import Any, Self

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws import fetched, names, objects
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.names import SETS
from bootstrap.aws.retry import Abandoned, retrying
from bootstrap.nodes import fleet
from bootstrap.nodes.fleet import GpuNode, of_role
from bootstrap.nodes.scale_up import scaled_up
from bootstrap.nodes.scaling_group import scaling_groups
from bootstrap.progress import Bars
from bootstrap.training.places.launch import NodeLaunch, queue_path, require_free
from bootstrap.training.places.nodes_followed import GO_ON, FollowedNodes, unanswered_message, wait_for_data
from bootstrap.training.places.place import Ended, Place, Run
from bootstrap.training.readers import ReadingProgress, count_readers, read_so_far
from bootstrap.training.run_view import RunView
from bootstrap.training.sources.source import Prepared, Source
from bootstrap.training.spending import Spending
from bootstrap.training.tensorboard import FOLDER, TensorBoardWriter
from common.display import printable
from common.errors import ShoalError, TrainingError
from corpus.dataset import open_dataset
from corpus.layout import DATASET_NAME
from corpus.reading import s3
from corpus.reading.s3 import head_if_there, is_s3, list_objects, read_text
from corpus.stream.lines import describe_malformed
from corpus.stream.stream_settings import is_socket
from corpus.text_request import describe_left_out
from experiments.forecast.estimate import Estimate
from experiments.forecast.rates import Node
from experiments.records.summaries import read_summary
from infra import catalog, cost, topology
from infra.topology_error import TopologyError
from trainer.config import TrainConfig
from trainer.output.run_files import SUMMARY, finished_model, require_free_output, was_stopped
from trainer.rank_processes import failure_in

_FILES = r"datasets-[0-9a-f]{32}-dataset\.h5|texts-[0-9a-f]{12}\.h5"
"""The names of datasets on nodes (bootstrap/agent/machine.py)."""
_ANSWERS = {".questions": ".answers"}
"""Of a set of analogies in MSR's format the other file."""


class OnDeployment(Place):
    """The GPU nodes of a deployment."""

    pause = 1.0
    reads_s3_alone = True

    def __init__(self, deployment: Deployment, *, held: Sequence[GpuNode] | None = None) -> None:
        """`held`: nodes that run already, and go on after a run, which then leaves nothing in the bucket."""
        self.deployment, self.name, self.held_nodes = deployment, deployment.name, held
        self.options = {"deployment": (self.name,)}
        self.topology, self.shares = deployment.topology, deployment.share is not None
        self.left: list[s3.S3Path] = []
        """What runs on held nodes leave in the bucket."""
        self._bucket = deployment.output(topology.OUTPUT_DATA_BUCKET)
        self._s3 = deployment.session.client("s3")

    @property
    def readers(self) -> int:
        """One on each node that reads, or else on the first that trains."""
        return max(1, count_readers(self.deployment))

    def dataset(self, address: str | None, bars: Bars) -> str:
        """The address of a dataset in S3; one here is uploaded."""
        if address is None:
            if (newest := self.newest_dataset(bars)) is None:
                raise ShoalError(
                    f"the deployment '{self.name}' has no dataset yet; make one by: "
                    f"shoal preprocess --deployment {self.name} --input FILE..."
                )
            return newest
        if not is_s3(address):
            return self._upload(Path(address), bars)
        place = self.deployment.readable(address, topology.OUTPUT_DATA_BUCKET)
        names.dataset(place.key)
        if place.key not in objects.sizes(self._s3, place):
            raise ShoalError(f"there is no dataset at {address}; check the address")
        return address

    def newest_dataset(self, bars: Bars) -> str | None:
        """The address of the deployment's newest dataset; None where it has none."""
        below = list_objects(self._s3, s3.S3Path(self._bucket, topology.DATASETS_PREFIX))
        found = [each for each in below if each["Key"].endswith(DATASET_NAME)]
        made = [each for each in found if names.is_dataset(each["Key"])]
        if len(made) < len(found):
            others = sorted(filterfalse(names.is_dataset, (each["Key"] for each in found)))
            bars.note(f"left out, because these are not names of Shoal's datasets: {', '.join(map(printable, others))}")
        return str(s3.S3Path(self._bucket, max(made, key=lambda each: each["LastModified"])["Key"])) if made else None

    def require_reads(self, address: str) -> None:
        """Nodes reach S3 alone, and of that what the topology names as its inputs."""
        if is_socket(address):
            raise ShoalError(
                f"the nodes of a deployment cannot reach {address}, as their network leads to S3 alone; have its "
                "sender write objects into a prefix there, and give that with --follow"
            )
        if not is_s3(address):
            raise ShoalError(
                f"{address} is on this machine, and the nodes of a deployment read text from S3 alone; upload it, such "
                "as by `aws s3 cp`, to an address within the `inputs` of the topology "
                f"'{self.deployment.topology}', and give that"
            )
        self.deployment.readable(address)

    def require_common_folder(self) -> None:
        """One node alone has one, several the share of their topology."""
        nodes = sum(group.size for group in fleet.groups(self.deployment))
        if nodes > 1 and self.deployment.share is None:
            raise ShoalError(
                f"the {nodes} nodes of the deployment '{self.name}' have no folder in which all of them would find "
                "the words; write `share: nfs` or `share: efs` in the file of its topology "
                f"'{self.deployment.topology}', and deploy again"
            )

    def finished_before(self, config: TrainConfig) -> dict[str, Any] | None:
        """None: the run that goes on is found in the bucket."""
        if not config.resume:
            require_free_output(config.output, force=config.force)
        elif (model := finished_model(config.output)) and not was_stopped(config.output):
            raise TrainingError(
                f"{model} is a finished model, which the resumed run would replace; choose another --output"
            )
        return None

    def prepare(self, source: Source, config: TrainConfig, bars: Bars) -> "DeploymentRun":
        """Upload what is here."""
        if config.embeddings is not None:
            raise ShoalError(
                "--embeddings goes with --local: the nodes of a deployment cannot read those vectors; train here, or "
                "leave it out"
            )
        if self.held_nodes is None:
            require_free(self.deployment)
        prepared = source.prepare(self, config, bars)
        for address in filter(is_s3, (*config.similarity, *config.analogy)):
            self.deployment.readable(
                address, topology.OUTPUT_DATA_BUCKET, under=(topology.RUNS_PREFIX, topology.DATASETS_PREFIX)
            )
        launch = NodeLaunch(self.deployment, self._unfinished(bars) if config.resume else self._new_name())
        if config.resume:
            prepared = prepared.resumed(launch.request_before)
        if self.held_nodes is not None:
            marks = s3.S3Path(self._bucket, f"{topology.FETCHED_PREFIX}{launch.run}.")
            self.left += [launch.folder, marks, queue_path(self.deployment)]
        return DeploymentRun(self, launch, prepared, config)

    def nodes(self, *, readers: bool = False) -> list[Node]:
        """All of its groups that train, and with `readers` of those that read; none where nodes are held. Raises
        ShoalError where it has none."""
        if self.held_nodes is not None:
            return []
        groups = scaling_groups(self.deployment, readers=readers)
        return [Node(each.instance_type, each.node_group.gpus) for each in groups for _ in range(each.node_group.size)]

    def dollars(self, seconds: Estimate, nodes: Sequence[Node]) -> Estimate | None:
        """As `Spending` counts."""
        try:
            prices = catalog.prices(str(self.deployment.session.region_name))
            return seconds.times(sum(cost.training_node(node.instance_type, prices) for node in nodes) / 3600)
        except TopologyError:
            return None

    @contextmanager
    def held(self, bars: Bars) -> Iterator[Self]:
        """The next training would take a dataset that is left for the newest one, or resume a run that is left."""
        require_free(self.deployment)
        with scaled_up(self.deployment, bars) as nodes:
            place = type(self)(self.deployment, held=nodes)
            try:
                yield place
            finally:
                for each in place.left:
                    objects.remove(self._s3, each)

    def _upload(self, path: Path, bars: Bars) -> str:
        with open_dataset(path) as opened:
            digest = opened.digest
        if path.name != DATASET_NAME:
            raise ShoalError(f"a dataset to upload must be named {DATASET_NAME}, but this is {path}; rename it")
        folder = s3.S3Path(self._bucket, f"{topology.DATASETS_PREFIX}{digest}/")
        uploaded = s3.S3Path(folder.bucket, folder.key + DATASET_NAME)
        if self.held_nodes is not None and head_if_there(self._s3, uploaded) is None:
            self.left.append(uploaded)
        return objects.upload(self._s3, [path], folder, bars)[0]

    def _runs(self) -> s3.S3Path:
        """The prefix of a deployment's runs; several deployments may share a bucket."""
        return s3.S3Path(self._bucket, f"{topology.RUNS_PREFIX}{self.name}.")

    def _new_name(self) -> str:
        """A name for a run: sorted by time, and different for two runs that start at once."""
        return f"{self.name}.{datetime.now(UTC):%Y%m%dT%H%M%S}-{random.getrandbits(16):04x}"

    def _unfinished(self, bars: Bars) -> str:
        """The newest run that did not end. Raises ShoalError when there is none."""
        keys = objects.sizes(self._s3, self._runs())
        found = {key.removeprefix(topology.RUNS_PREFIX).partition("/")[0] for key in keys}
        if others := sorted(filterfalse(names.is_run, found)):
            bars.note(f"left out, because these are not names of Shoal's runs: {', '.join(map(printable, others))}")
        for name in sorted(filter(names.is_run, found), reverse=True):
            summary = read_text(self._s3, s3.S3Path(self._bucket, f"{topology.RUNS_PREFIX}{name}/{SUMMARY}"))
            if summary is None or '"stopped": true' in summary:
                return name
        raise ShoalError(f"no training of '{self.name}' was stopped; leave out --resume to start one")


class DeploymentRun(Run):
    """A run on a deployment's nodes."""

    def __init__(self, place: OnDeployment, launch: NodeLaunch, prepared: Prepared, config: TrainConfig) -> None:
        self.config, self.prepared, self.launch = config, prepared, launch
        self._place, self._s3 = place, place.deployment.session.client("s3")
        self._nodes: Sequence[GpuNode] = ()
        self._spending: Spending | None = None
        self._followed: FollowedNodes | None = None

    @contextmanager
    def resources(self, bars: Bars) -> Iterator[None]:
        """The nodes that train, and those that read where there is a stream."""
        deployment, held, began = self._place.deployment, self._place.held_nodes, datetime.now(UTC)
        if held is not None:
            self._nodes = held
            yield
            return
        with scaled_up(deployment, bars, readers=self.prepared.readers > 0) as self._nodes:
            self._spending = Spending(self._nodes, region=str(deployment.session.region_name), since=began)
            yield

    @contextmanager
    def started(self, bars: Bars) -> Iterator[None]:
        """Ask the nodes for the run."""
        bars.stage(*self.prepared.staging)
        self.launch.start(self._nodes, self._with_sets(bars), self.prepared.request(), bars)
        abandoned = False
        try:
            yield
        except Abandoned:  # AWS does not answer, and the run continues
            abandoned = True
            raise
        finally:
            if not abandoned:
                with suppress(BotoCoreError, ClientError, ShoalError):
                    self.launch.forget()

    def wait_for_data(self, bars: Bars) -> None:
        """Wait for all nodes."""
        wait_for_data(self.launch, bars)
        for node in list(self.launch.statuses().values())[:1]:
            for sentence in describe_left_out(lines=node.lines, malformed=node.malformed, empty=node.empty):
                bars.note(sentence)

    @contextmanager
    def view(self, bars: Bars) -> Iterator[RunView]:
        """The record as it grows in the bucket."""
        readers = self.prepared.readers
        bars.stage("read the text" if readers else "start the ranks", 0)
        read = ReadingProgress(self._s3, self.launch.folder, readers) if readers else None
        with TensorBoardWriter(self.config.output / FOLDER) as board:
            view = RunView(bars, board, spent=self.spent, read=read)
            self._followed = FollowedNodes(self.launch, view, bars)
            yield view

    def is_over(self, view: RunView) -> bool:  # noqa: ARG002
        """Whether all nodes have ended what they did."""
        return self._following.is_over()

    def stop(self, bars: Bars) -> None:
        """Ask the nodes; they may hear of it late, where AWS does not answer."""
        if retrying.unanswered:
            bars.note(unanswered_message(self.launch))
        self._following.stop()

    def spent(self) -> float | None:
        """By the time of the nodes."""
        return self._spending.so_far() if self._spending else None

    def collect(self, bars: Bars, *, stopped: bool) -> Ended:
        """Copy the run's files to the output, and note that in the bucket."""
        read = self._what_was_read(bars) if self.prepared.readers else {}
        output, folder = self.config.output, self.launch.folder
        etags = fetched.etags(self._s3, folder)
        files, refused = objects.download(self._s3, folder, output, check=names.result)
        if not refused:
            fetched.mark(self._s3, self.launch.bucket, {self.launch.run: etags}, bars.note)
        summary = read_summary(output) if output / SUMMARY in files else None
        train, read_nodes = of_role(self._nodes, "train"), of_role(self._nodes, "read")
        kept = {
            name: [{**vars(node), "launched": node.launched.isoformat()} for node in nodes]
            for name, nodes in (("nodes", train), ("readers", read_nodes))
        }
        return Ended(
            summary=summary,
            failure=self._failure(files, refused, summary, bars, stopped=stopped),
            told={
                "nodes": [vars(node) for node in train],
                "readers": [vars(node) for node in read_nodes],
                "run": str(folder),
                **({"inputs": list(self.prepared.inputs)} if self.prepared.inputs else {}),
                **read,
                "refused": refused,
            },
            launch={**kept, **({"emulated": True} if self._place.deployment.is_emulated else {})},
        )

    @property
    def _following(self) -> FollowedNodes:
        assert self._followed is not None
        return self._followed

    def _with_sets(self, bars: Bars) -> TrainConfig:
        """The configuration with its sets where nodes can read them: those of this machine are uploaded."""
        bring = partial(self._brought, bars)
        similarity, analogy = map(bring, self.config.similarity), map(bring, self.config.analogy)
        return replace(self.config, similarity=tuple(similarity), analogy=tuple(analogy))

    def _brought(self, bars: Bars, address: str) -> str:
        if is_s3(address):
            return address
        path = Path(address)
        beside = path.with_suffix(_ANSWERS.get(path.suffix, path.suffix))
        files = [path, beside] if beside != path and beside.exists() else [path]
        return objects.upload(self._s3, files, s3.S3Path(self.launch.bucket, f"{self.launch.folder.key}{SETS}"), bars)[
            0
        ]

    def _what_was_read(self, bars: Bars) -> dict[str, Any]:
        found = read_so_far(self._s3, self.launch.folder, self.prepared.readers)
        if found.malformed:
            bars.note(f"{describe_malformed(found.malformed, found.lines)}; see reader-N.log")
        return {"read": asdict(found)}

    def _failure(
        self,
        files: Sequence[Path],
        refused: Sequence[str],
        summary: dict[str, Any] | None,
        bars: Bars,
        *,
        stopped: bool,
    ) -> Exception | None:
        """Why a run came to no end, by its nodes, or else by its logs, in which what it learns from is a path of a
        node."""
        end = self._followed.end if self._followed else None
        if end is not None and end.error:
            return ShoalError(f"{printable(end.error)}{self._where(end.error)}")
        if stopped or (summary is not None and not summary["stopped"]):
            return None
        for sentence in refused:
            bars.note(f"not fetched: {sentence}")
        # Logs of more nodes are older: the run had them before it was resumed.
        output, attempt = self.config.output, self.launch.attempt()
        trainers = attempt.trainers if attempt else ()
        logs = [path for rank in range(len(trainers)) if (path := output / f"node-{rank}.log") in files]
        text = "\n".join(path.read_text("utf-8", "replace") for path in logs)
        failed = failure_in(text, f"the logs are in {output}")
        on_nodes = rf"\S*/(datasets/({_FILES})|streams/{re.escape(self.launch.run)}(/[\w-]+)*)"
        return type(failed)(re.sub(on_nodes, self.prepared.called, str(failed)))

    def _where(self, error: str) -> str:
        """What follows the sentence of a node that could not go on."""
        return f"; its log is in {self.launch.folder}{GO_ON}" if error.startswith("reader ") else ""
