"""A run on a deployment's GPU nodes: they are claimed, scaled up, asked for a rank a GPU, followed by their statuses,
and scaled to zero.

Whatever needs nodes must happen inside `resources`, because otherwise a failure would leave nodes that cost money.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.agent.documents import log_name
from bootstrap.aws import fetched, names, objects
from bootstrap.aws.names import SETS
from bootstrap.aws.retry import Abandoned, retrying
from bootstrap.interrupt import Detached
from bootstrap.nodes import fleet
from bootstrap.nodes.fleet import GpuNode, of_role
from bootstrap.nodes.scale_up import scaled_up
from bootstrap.progress import Bars
from bootstrap.training.places import brought
from bootstrap.training.places.bucket_place import RunInBucket
from bootstrap.training.places.launch import NodeLaunch
from bootstrap.training.places.nodes_followed import GO_ON, LONGEST_STOP_SECONDS, FollowedNodes, wait_for_data
from bootstrap.training.places.nodes_watch import NodesWatch, record_in_bucket, unanswered_message
from bootstrap.training.places.place import Ended
from bootstrap.training.places.run_launch import DEFAULT, Wishes
from bootstrap.training.readers import ReadingProgress, read_so_far
from bootstrap.training.run_view import RunView
from bootstrap.training.sources.source import Prepared
from bootstrap.training.spending import Spending
from common.display import plural
from common.errors import ShoalError
from corpus.reading import s3
from corpus.stream.lines import describe_malformed
from corpus.text_request import describe_left_out
from experiments.records.summaries import read_summary
from infra import parts
from trainer.config import TrainConfig
from trainer.output.run_files import SUMMARY
from trainer.rank_processes import failure_in

_FILES = r"datasets-[0-9a-f]{32}-dataset\.h5|texts-[0-9a-f]{12}\.h5"
"""The names of datasets on nodes (bootstrap/agent/machine.py)."""
_ROLES = get_args(parts.Role)


class DeploymentRun(RunInBucket):
    def __init__(
        self,
        launch: NodeLaunch,
        prepared: Prepared,
        config: TrainConfig,
        *,
        wishes: Wishes = DEFAULT,
    ) -> None:
        self.config, self.prepared, self.launch = config, prepared, launch
        self._wishes, self._deployment = wishes, launch.deployment
        self._s3 = launch.deployment.session.client("s3")
        self._nodes: Sequence[GpuNode] = ()
        self._spending: Spending | None = None
        self._followed: FollowedNodes | None = None

    @contextmanager
    def resources(self, bars: Bars) -> Iterator[None]:
        """The nodes that train, and those that read where there is a stream; none where the run has ended."""
        launch, deployment, readers = self.launch, self._deployment, self.prepared.readers > 0
        if not launch.is_claimed:
            self._claim(bars)
        with self._forgotten_after_errors():
            self._spending = Spending(region=str(deployment.session.region_name), since=launch.began)
            # Only who has begun a run ends its nodes where something goes wrong. One that has ended may have left them.
            if self._wishes.leave or launch.end() is not None:
                yield
                fleet.scale_to_zero(deployment, fleet.groups(deployment, readers=True), unless=launch.keeps_nodes)
                return
            running = launch.found and launch.request.ready and any(each.desired for each in fleet.groups(deployment))
            start = not running and not launch.before()
            with scaled_up(deployment, bars, readers=readers, start=start, stays=launch.keeps_nodes) as nodes:
                self._spending.see(nodes)
                self._nodes = nodes
                yield

    @contextmanager
    def started(self, bars: Bars) -> Iterator[None]:
        """Have the nodes begin. A closed terminal and expired credentials leave the run to itself."""
        bars.stage(*self.prepared.staging)
        if not self._wishes.leave:
            self.launch.begin([each.instance_id for each in self._nodes], until=self._until())
        with self._left_to_itself():
            yield

    def _until(self) -> float | None:
        """When the ranks are to stop, in seconds since 1970, so that stopping them is paid for, too; None where they
        may cost what they cost. Raises ShoalError where nothing is left for them."""
        most, spending = self.launch.request.max_dollars, self._spending
        if most is None or spending is None:
            return None
        spent, hourly = spending.so_far(), spending.hourly()
        if spent is None or not hourly:
            raise ShoalError("--max-dollars needs prices; `make prices` makes a list of them for a region")
        seconds = (most - spent) / hourly * 3600 - LONGEST_STOP_SECONDS
        if seconds <= 0:
            raise ShoalError(
                f"{self._deployment.limit_of(most)}, of which starting the nodes has cost ${spent:.2f}, and they cost "
                f"${hourly:.2f} an hour; give a higher --max-dollars"
            )
        return time.time() + seconds

    def left(self) -> Mapping[str, Any]:
        return {"run": self.launch.run, "deployment": self._deployment.name}

    def wait_for_data(self, bars: Bars) -> None:
        wait_for_data(self.launch, NodesWatch(self.launch), bars, detach=self._wishes.detach)
        for node in list(self.launch.statuses().values())[:1]:
            for sentence in describe_left_out(lines=node.lines, malformed=node.malformed, empty=node.empty):
                bars.note(sentence)

    def _claim(self, bars: Bars) -> None:
        """Claim the nodes, and bring them the sets of this machine, which a launch that is found has already."""
        launch, wishes = self.launch, self._wishes
        groups = fleet.groups(self._deployment, readers=self.prepared.readers > 0)
        counts = [sum(each.size for each in groups if each.role == role) for role in _ROLES]
        if wishes.min_nodes > counts[0]:
            trains = plural(counts[0], "node")
            raise ShoalError(f"--min-nodes is {wishes.min_nodes}, but '{self._deployment.name}' trains on {trains}")
        folder = s3.S3Path(launch.bucket, f"{launch.folder.key}{SETS}")
        launch.claim(
            brought.in_bucket(self.config, folder),
            self.prepared.request(),
            trainers=counts[0],
            readers=counts[1],
            wishes=wishes,
            bars=bars,
        )
        if not launch.found:
            brought.upload(self._s3, self.config, folder, bars)

    @contextmanager
    def _forgotten_after_errors(self) -> Iterator[None]:
        """Have nodes that stay end what they do after an error, unless the run is left to itself."""
        try:
            yield
        except (Abandoned, Detached):
            raise
        except BaseException:
            if self._wishes.leave:
                raise
            with suppress(BotoCoreError, ClientError, ShoalError):
                self.launch.forget()
            raise

    def view(self, bars: Bars) -> RunView:
        """The record as it grows in the bucket."""
        readers = self.prepared.readers
        bars.stage("read the text" if readers else "start the ranks", 0)
        read = ReadingProgress(self._s3, self.launch.folder, readers) if readers else None
        view = RunView(bars, spent=self.spent, read=read)
        seen = self._spending.see if self._spending else lambda _: None
        record = record_in_bucket(self._s3, self.launch.folder, view, found=self.launch.found)
        self._followed = FollowedNodes(self.launch, record, NodesWatch(self.launch, seen), bars)
        return view

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
        if summary is not None and summary["stopped"] and not stopped:
            bars.note(self._what_is_left(summary))
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
                **({"kept": True} if self.launch.request.keep else {}),
                **({"inputs": list(self.prepared.inputs)} if self.prepared.inputs else {}),
                **read,
                "refused": refused,
            },
            launch={**kept, **({"emulated": True} if self._deployment.is_emulated else {})},
        )

    @property
    def _following(self) -> FollowedNodes:
        assert self._followed is not None
        return self._followed

    def _what_is_left(self, summary: Mapping[str, Any]) -> str:
        """A sentence on a run that was stopped for its costs, or from elsewhere."""
        asked = self.launch.request
        why = "somebody has stopped it"
        if asked.max_dollars is not None and not asked.stop and asked.at(time.time()).stop:
            why = f"it would have cost more than ${asked.max_dollars:g}"
        done, spent = summary["rows_seen"], self.spent()
        rows = summary.get("rows", 0) * (self.config.epochs or 0)
        more = (
            f"; to finish it costs about ${spent * (rows - done) / done:.2f} more" if spent and rows > done > 0 else ""
        )
        return f"the run is stopped, because {why}{more}"

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
            log = f"; its log is in {self.launch.folder}{GO_ON}" if end.error.startswith("reader ") else ""
            return ShoalError(f"{end.error}{log}")
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
        output, attempt = self.config.output, self.launch.attempt()
        trainers = attempt.trainers if attempt else ()
        number = attempt.number if attempt else 1
        wanted = [output / log_name(f"node-{each}", number) for each in range(len(trainers))]
        logs = [path for path in wanted if path in files]
        text = "\n".join(path.read_text("utf-8", "replace") for path in logs)
        failed = failure_in(text, f"the logs are in {output}")
        on_nodes = rf"\S*/(datasets/({_FILES})|streams/{re.escape(self.launch.run)}(/[\w-]+)*)"
        return type(failed)(re.sub(on_nodes, self.prepared.called, str(failed)))
