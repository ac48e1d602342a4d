"""A deployment's GPU nodes: scaled up, asked for a rank a GPU, followed by their statuses, and scaled to zero.

Whatever needs nodes must happen inside `resources`, because otherwise a failure would leave nodes that cost money.
"""

import random
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from itertools import filterfalse
from pathlib import Path
from typing import Any, Self, get_args

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws import fetched, names, objects
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.names import SETS
from bootstrap.aws.retry import Abandoned, is_not_accepted, retrying
from bootstrap.interrupt import Detached, mark_handled, name_of
from bootstrap.nodes import fleet
from bootstrap.nodes.fleet import GpuNode, of_role
from bootstrap.nodes.scale_up import scaled_up
from bootstrap.nodes.scaling_group import scaling_groups
from bootstrap.progress import Bars
from bootstrap.training.places.launch import NodeLaunch, Wishes, queue_path, require_free
from bootstrap.training.places.nodes_followed import GO_ON, FollowedNodes, unanswered_message, wait_for_data
from bootstrap.training.places.place import Ended, Place, Run
from bootstrap.training.readers import ReadingProgress, count_readers, read_so_far
from bootstrap.training.run_view import RunView
from bootstrap.training.sources.source import Prepared, Source
from bootstrap.training.spending import Spending
from bootstrap.training.tensorboard import FOLDER, TensorBoardWriter
from common.display import plural, printable
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
from infra import catalog, cost, parts, topology
from infra.topology_error import TopologyError
from trainer.config import TrainConfig
from trainer.output.run_files import SUMMARY, finished_model, require_free_output, was_stopped
from trainer.rank_processes import failure_in

_FILES = r"datasets-[0-9a-f]{32}-dataset\.h5|texts-[0-9a-f]{12}\.h5"
"""The names of datasets on nodes (bootstrap/agent/machine.py)."""
_ROLES = get_args(parts.Role)
_ANSWERS = {".questions": ".answers"}
"""Of a set of analogies in MSR's format the other file."""


class OnDeployment(Place):
    """The GPU nodes of a deployment."""

    pause = 1.0
    reads_s3_alone = True

    def __init__(
        self, deployment: Deployment, wishes: Wishes = Wishes(), *, held: Sequence[GpuNode] | None = None
    ) -> None:
        """`held`: nodes that run already, and go on after a run, which then leaves nothing in the bucket."""
        self.wishes = wishes
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
            place = type(self)(self.deployment, Wishes(keep=True, alone=True), held=nodes)
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
        """The nodes that train, and those that read where there is a stream; none where the run has ended."""
        place, launch = self._place, self.launch
        deployment, readers = place.deployment, self.prepared.readers > 0
        if not launch.is_claimed:
            self._claim(bars)
        with self._forgotten_after_errors():
            if place.held_nodes is not None:
                self._nodes = place.held_nodes
                yield
                return
            if launch.end() is not None:
                yield
                return
            running = launch.found and launch.request.ready and any(each.desired for each in fleet.groups(deployment))
            self._spending = Spending(region=str(deployment.session.region_name), since=launch.began)
            with scaled_up(deployment, bars, readers=readers, start=not running, stays=launch.keeps_nodes) as nodes:
                self._spending.see(nodes)
                self._nodes = nodes
                yield

    @contextmanager
    def started(self, bars: Bars) -> Iterator[None]:
        """Have the nodes begin. A closed terminal and expired credentials leave the run to itself."""
        bars.stage(*self.prepared.staging)
        self.launch.begin(self._nodes)
        try:
            yield
        except KeyboardInterrupt as interrupt:
            if not self.leaves(interrupt):
                raise
            mark_handled(interrupt)
            raise Detached from None
        except (BotoCoreError, ClientError) as error:
            if self._place.held_nodes is not None or not is_not_accepted(error):
                raise
            raise Detached(f"AWS does not accept your credentials any more ({error})") from error

    def leaves(self, interrupt: KeyboardInterrupt) -> bool:
        """Whether this interrupt ends the command alone."""
        return self._place.held_nodes is None and name_of(interrupt) == signal.SIGHUP.name

    def left(self) -> Mapping[str, Any]:
        """The run, and where it is."""
        return {"run": self.launch.run, "deployment": self._place.name}

    def wait_for_data(self, bars: Bars) -> None:
        """Wait for all nodes."""
        wait_for_data(self.launch, bars, detach=self._place.wishes.detach)
        for node in list(self.launch.statuses().values())[:1]:
            for sentence in describe_left_out(lines=node.lines, malformed=node.malformed, empty=node.empty):
                bars.note(sentence)

    def _claim(self, bars: Bars) -> None:
        """Claim the nodes, and bring them the sets of this machine, which a launch that is found has already."""
        place, launch = self._place, self.launch
        if (held := place.held_nodes) is not None:
            counts = [len(of_role(held, role)) for role in _ROLES]
        else:
            groups = fleet.groups(place.deployment, readers=self.prepared.readers > 0)
            counts = [sum(each.size for each in groups if each.role == role) for role in _ROLES]
        if place.wishes.min_nodes > counts[0]:
            raise ShoalError(
                f"--min-nodes is {place.wishes.min_nodes}, but '{place.name}' has {plural(counts[0], 'node')} that train"
            )
        sets = [each for each in (*self.config.similarity, *self.config.analogy) if not is_s3(each)]
        folder = s3.S3Path(launch.bucket, f"{launch.folder.key}{SETS}")
        launch.claim(
            replace(
                self.config,
                similarity=tuple(_brought(each, folder) for each in self.config.similarity),
                analogy=tuple(_brought(each, folder) for each in self.config.analogy),
            ),
            self.prepared.request(),
            trainers=counts[0],
            readers=counts[1],
            wishes=place.wishes,
            bars=bars,
        )
        if not launch.found:
            for address in sets:
                path = Path(address)
                beside = path.with_suffix(_ANSWERS.get(path.suffix, path.suffix))
                files = [path, beside] if beside != path and beside.exists() else [path]
                objects.upload(self._s3, files, folder, bars)

    @contextmanager
    def _forgotten_after_errors(self) -> Iterator[None]:
        """Have nodes that stay end what they do after an error, unless the run is left to itself."""
        try:
            yield
        except (Abandoned, Detached):
            raise
        except BaseException:
            with suppress(BotoCoreError, ClientError, ShoalError):
                self.launch.forget()
            raise

    @contextmanager
    def view(self, bars: Bars) -> Iterator[RunView]:
        """The record as it grows in the bucket."""
        readers = self.prepared.readers
        bars.stage("read the text" if readers else "start the ranks", 0)
        read = ReadingProgress(self._s3, self.launch.folder, readers) if readers else None
        with TensorBoardWriter(self.config.output / FOLDER) as board:
            view = RunView(bars, board, spent=self.spent, read=read)
            seen = self._spending.see if self._spending else lambda _: None
            self._followed = FollowedNodes(self.launch, view, bars, seen)
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
        self.launch.forget()
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
                **({"kept": True} if self.launch.request.keep and self._place.held_nodes is None else {}),
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
        if end is not None and end.outcome == "stopped" and summary is None and not stopped:
            return ShoalError(f"run {self.launch.run} was stopped before its first checkpoint; start it again")
        if (
            stopped
            or (end is not None and end.outcome == "stopped")
            or (summary is not None and not summary["stopped"])
        ):
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


def _brought(address: str, folder: s3.S3Path) -> str:
    """Where nodes find a set of words: one of this machine in a folder of their bucket."""
    return (
        address if is_s3(address) else str(s3.S3Path(folder.bucket, folder.key + objects.safe_name(Path(address).name)))
    )
