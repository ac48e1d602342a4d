"""Backend on hosts: machines of the user that Shoal reaches by SSH.

Hosts run the same agents as a deployment's nodes. The store of the agents is a folder that all hosts share, or a bucket
of the user. Shoal does not know what hosts cost.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.node.folder import Folder
from bootstrap.node.store import Bucket, Store
from common import names
from common.errors import DataError, ShoalError, UsageError
from common.json_values import parse_json_object
from common.progress import reporter
from corpus.dataset import open_dataset
from corpus.layout import DATASET_NAME
from corpus.reading import s3
from corpus.reading.s3 import is_s3, place_of
from shoal.aws.retry import is_credentials_error, retrying
from shoal.backends.agents import AgentBackend
from shoal.runs.run import NO_LIMITS, Limits, Run
from shoal.runs.sources.source import DataAccess, DataSource, Staging
from shoal.runs.store import Launch, RequestedRuns
from shoal.ssh.connection import Connection, LostError
from shoal.ssh.group import HostGroup
from shoal.ssh.hosts_file import HostsFile
from shoal.ssh.payload import CodePayload
from trainer.config import TrainConfig

_GROUP = "hosts"
"""Name of the group of all hosts. A shared folder or a bucket has only one group of hosts."""
_SILENT_SECONDS = 8.0
"""Seconds without a heartbeat after which a host's agent is restarted. Each attempt to restart it doubles this time."""
_MOST_SILENT_SECONDS = 300.0


class HostsData(DataAccess):
    """Data for the ranks on hosts: a dataset of this machine, which is sent to the hosts."""

    def dataset(self, address: str | None) -> str:
        """Return the path of a dataset on this machine, after checking it.

        Raises DataError if the dataset is invalid.
        """
        if address is None:
            raise UsageError(
                "--hosts needs --data FILE, a dataset that `shoal preprocess` wrote, or --input FILE... with texts"
            )
        with open_dataset(Path(address)):
            return address

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ShoalError for options with files of this machine, which hosts cannot read."""
        if options.get("similarity") or options.get("analogy"):
            raise ShoalError("--similarity and --analogy are not supported with --hosts; train with --local")
        if (vectors := options.get("embeddings")) is not None and not is_s3(vectors):
            raise ShoalError(
                f"hosts cannot read --embeddings {vectors}, a file of this machine; copy it to S3, or train "
                "with --local"
            )


class HostsBackend(AgentBackend):
    """Backend on the hosts of a hosts file."""

    look_seconds = 3.0
    staging = Staging("copy the dataset to the hosts")
    when_silent = "the log of the agent is agent.log on its host, in the folder of ~/.shoal with the name of the node"

    def __init__(self, file: HostsFile) -> None:
        self.file, self.name, self.data = file, str(file.path), HostsData()
        self.options = {"hosts": (self.name,)}
        self.hosts, self._code = HostGroup(file), CodePayload()
        super().__init__(RequestedRuns(store_of(self.hosts), _GROUP))
        self._are_working = False
        """True if ranks are running on a host."""
        self._heartbeats: dict[str, tuple[str, float, float]] = {}
        """For each host: the tag of its last heartbeat, the monotonic time at which the tag changed, and the seconds to
        wait before the next restart of the agent.
        """

    def new_launch(self, name: str) -> Launch:
        return Launch(self.requests, name, require_free=self._require_free)

    def _require_free(self, run: str) -> None:
        if self._are_working:
            raise ShoalError(
                f"the training run {run} uses these hosts; wait until it ends, or repeat its command and press Ctrl-C"
            )

    def prepare(self, source: DataSource, config: TrainConfig, limits: Limits = NO_LIMITS) -> Run:
        """Prepare a run. A dataset of raw texts is created on this machine. Raises ShoalError also for streams."""
        run = super().prepare(source, config, limits)
        if run.data.readers or run.data.local_path is None:
            raise ShoalError("--hosts does not support streams; use --local or --deployment")
        return run

    def start(self, run: Run) -> Run:
        """Send the code and the dataset to the hosts, claim the hosts, and start their agents."""
        assert run.data.local_path is not None
        reporter().stage("connect")
        self.hosts.on_all(self._code.install)
        dataset = _send_dataset(self.requests.store, run.data.local_path)
        reporter().stage("start the agents")
        name = self.requests.unfinished() if run.resumes else self.requests.new_name()
        return self._claim(replace(run, name=name), dataset)

    def _claim(self, run: Run, dataset: str) -> Run:
        """Claim the hosts for a run with a dataset in the store, and start the agents."""
        launch, hosts = self.new_launch(run.name), self.file.hosts
        self._are_working = self.requests.active_request() is not None and any(
            each["works"] for each in self.hosts.on_all(partial(self._call_agent, "--ask"))
        )
        self._launch = launch
        instances = [each.instance for each in hosts]
        launch.claim(run, trainers=len(hosts), nodes=tuple(instances), share=None, dataset=dataset)
        if launch.end() is None:
            self.hosts.on_all(self.start_agent)
        launch.start(instances)
        return replace(run, name=launch.run)

    def stop(self, name: str, *, at_once: bool = False) -> None:
        """Request a stop. With `at_once`, remove the request: without it, the agents end the run.

        The request of an earlier command remains, because its run continues.
        """
        if at_once:
            if self._launch is not None and not self._launch.already_started:
                with suppress(ShoalError):
                    self._launch.forget()
        elif (launch := self.launch(name)).end() is None and not launch.request.stop:
            launch.ask_to_stop()

    def __exit__(self, *error: object) -> None:
        self.hosts.close()

    def start_agent(self, connection: Connection) -> None:
        """Start a host's agent, unless it is running.

        Raises ShoalError if the agent cannot run on the host, and LostError if the host does not answer.
        """
        self._call_agent("", connection)

    def _call_agent(self, option: str, connection: Connection) -> dict[str, Any]:
        """Start a host's agent. With the option `--ask`, only request its state. Returns the answer of the host."""
        host, gpus = connection.host, connection.host.gpus
        status, output, errors = connection.run(
            (
                *(
                    "env",
                    f"PYTHONPATH={self._code.install(connection)}",
                    host.python,
                    "-P",
                    "-m",
                    "bootstrap.node.host",
                ),
                *("--group", _GROUP, "--store", self.requests.store.name, "--instance", host.instance),
                *("--address", connection.address, *(("--gpus", str(gpus)) if gpus else ()), *filter(None, (option,))),
            )
        )
        try:
            answer = parse_json_object(output) if not status else {}
        except DataError:
            answer = {}
        if isinstance(missing := answer.get("missing"), list) and missing:
            raise ShoalError(
                f"{host.label}: {host.python} has no module {missing[0]}; install PyTorch and "
                "bootstrap/gpu/requirements.txt on this host, or name a different Python in "
                f"{self.file.path}: python=/path"
            )
        if unable := answer.get("unable"):
            raise ShoalError(
                f"{host.label} cannot use {self.requests.store.name}: {str(unable).rstrip('.')}; the host needs its "
                "own AWS credentials, from a role or in its ~/.aws, with permission to list, read, write and delete "
                "objects"
            )
        if (other := answer.get("other")) not in (None, self.requests.store.name):
            raise ShoalError(
                f"{host.label}: a training run in a different folder, {other}, uses this host; wait until it ends"
            )
        if not isinstance(answer.get("works"), bool):
            last = (errors.strip() or output.strip()).splitlines()[-1:] or ["it printed nothing"]
            raise ShoalError(f"{host.label}: its agent does not start: {last[0]}")
        return answer

    def look_at_nodes(self) -> None:
        """Restart agents that send no heartbeats: their host has rebooted, or the agent has exited.

        The run continues undisturbed if the agent sends heartbeats again within GONE_SECONDS.
        """
        now, heartbeats = time.monotonic(), self.requests.store.list(names.NODES)
        for host in self.file.hosts:
            heartbeat = heartbeats.get(names.heartbeat_key(host.instance))
            tag = heartbeat.tag if heartbeat else ""
            known, since, pause = self._heartbeats.setdefault(host.instance, (tag, now, _SILENT_SECONDS))
            if tag != known:
                self._heartbeats[host.instance] = (tag, now, _SILENT_SECONDS)
            elif now - since > pause:
                try:
                    self.start_agent(self.hosts.connect(host))
                except ShoalError as error:
                    if pause == _SILENT_SECONDS:
                        reporter().note(f"{error}; Shoal tries again until the host answers")
                self._heartbeats[host.instance] = (tag, time.monotonic(), min(2 * pause, _MOST_SILENT_SECONDS))


def store_of(hosts: HostGroup) -> Store:
    """Return the store of the hosts: a folder, or a bucket.

    The command and each host reach a bucket with their own credentials.

    Raises LostError if the bucket is not usable.
    """
    address = hosts.file.folder
    if not is_s3(address):
        return Folder(address, hosts.use_files)
    return Bucket(place_of(address).bucket, call=retrying, explained=lambda: _explained(address))


@contextmanager
def _explained(address: str) -> Iterator[None]:
    try:
        with s3.explained_errors(address, "use"):
            yield
    except DataError as error:
        cause = error.__cause__
        if isinstance(cause, BotoCoreError | ClientError) and is_credentials_error(cause):
            why = f"AWS does not accept the credentials of this command for {address} ({cause})"
            raise LostError(f"{why}; renew them, or set AWS_PROFILE to a profile with valid ones") from error
        raise LostError(str(error)) from error


def _send_dataset(store: Store, path: Path) -> str:
    """Upload a dataset to the store, unless the store has it. Returns the key of the dataset in the store.

    Raises DataError if the dataset is invalid.
    """
    with open_dataset(path) as opened:
        key = f"datasets/{opened.digest}/{DATASET_NAME}"
    size = path.stat().st_size
    reporter().stage("send the dataset", size, "B")
    if store.size(key) != size:
        store.put(path, key, reporter().add)
    reporter().at(size)
    return key
