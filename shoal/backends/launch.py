"""Launch of a run on a deployment's nodes."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from bootstrap.node.store import Bucket
from common import names
from common.errors import ShoalError
from common.names import REQUEST_NAME
from corpus.reading.s3 import S3Path, head_or_none
from shoal.aws import checked, fetched, fleet
from shoal.aws.deployment import Deployment
from shoal.aws.retry import retrying
from shoal.aws.scale_up import READY_SECONDS
from shoal.runs.run import LaunchOptions
from shoal.runs.store import Launch, RequestedRuns
from trainer.command_line import option_values
from trainer.config import TrainConfig

_SET_BY_NODES = ("data", "output", "cache")


def needs_prices(region: str) -> str:
    return (
        f"--max-dollars needs prices, but Shoal does not know the prices of {region}; `make prices REGION={region}` "
        "downloads them"
    )


class NodeLaunch(Launch):
    """Launch of a run on a deployment's nodes, with documents in its data bucket."""

    def __init__(self, deployment: Deployment, run: str) -> None:
        super().__init__(requested_runs(deployment), run)
        self.deployment, self._requested_at, self._bucket = deployment, datetime.now(UTC), _bucket(deployment)

    @property
    def folder(self) -> S3Path:
        """Folder of the run in the data bucket."""
        return S3Path(self._bucket, f"{names.RUNS}{self.run}/")

    @property
    def requested_at(self) -> datetime:
        """Time at which this command made the request.

        For a launch of an earlier command, the time in the run's name.
        """
        if not self.already_started:
            return self._requested_at
        return names.start_time(self.run)

    def claim(self, launch_options: LaunchOptions, *, force: bool, **fields: Any) -> bool:
        new = super().claim(launch_options, force=force, **fields)
        if new:  # record the copy of the request as fetched, because nobody needs to fetch it
            tag = self.requests.store.list(self._copy_key)[self._copy_key].tag
            s3 = self.deployment.session.client("s3")
            fetched.record(s3, self._bucket, {self.run: {REQUEST_NAME: tag}})
        return new

    def require_free(self, run: str) -> None:
        """Raise ShoalError if nodes are running, or if another command is possibly starting them."""
        deployment, place = self.deployment, S3Path(self._bucket, names.request_key(self.deployment.name))
        head, just_changed = head_or_none(deployment.session.client("s3"), place), False
        if head is not None:  # another command is possibly starting nodes; both times are S3's
            now = parsedate_to_datetime(head["ResponseMetadata"]["HTTPHeaders"]["date"])
            just_changed = (now - head["LastModified"]).total_seconds() < READY_SECONDS
        if just_changed or any(group.desired for group in fleet.groups(deployment)):
            raise ShoalError(
                f"a training uses the nodes of '{deployment.name}': {run}; wait until it ends, or stop it: "
                f"shoal stop {deployment.name} {run}"
            )

    def first_attempt_at(self) -> datetime | None:
        """Return the time of the first attempt according to S3's clock; None before the first attempt."""
        for first in self.attempts()[:1]:
            place = S3Path(self._bucket, names.attempt_key(self.run, first.number))
            head = retrying(partial(head_or_none, self.deployment.session.client("s3"), place))
            if head is not None:
                return head["LastModified"]
        return None


def options_of(config: TrainConfig) -> dict[str, tuple[str, ...]]:
    return {name: words for name, words in option_values(config).items() if name not in _SET_BY_NODES}


def requested_runs(deployment: Deployment) -> RequestedRuns:
    store = Bucket(_bucket(deployment), deployment.session.client("s3"), call=retrying)
    return RequestedRuns(store, deployment.name)


def _bucket(deployment: Deployment) -> str:
    return checked.bucket(deployment.output(names.OUTPUT_DATA_BUCKET))
