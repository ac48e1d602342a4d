"""Place on hosts: machines of the user that Shoal reaches by SSH.

Hosts run the same agents as a deployment's nodes. The store of the agents is a folder that all hosts share, or a bucket
of the user. Shoal does not know what hosts cost.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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
from shoal.backends.followed import AgentRun
from shoal.backends.launch import options_of
from shoal.backends.place import Place, Run, RunResult
from shoal.interrupt import Detached
from shoal.runs.run import DEFAULT, LaunchOptions
from shoal.runs.sources.source import DataSource, Prepared
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


class HostsPlace(Place):
    """Place on the hosts of a hosts file."""

    pause = 1.0

    def __init__(self, file: HostsFile, launch_options: LaunchOptions = DEFAULT) -> None:
        self.file, self.launch_options, self.name = file, launch_options, str(file.path)
        self.options = {"hosts": (str(file.path),)}

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

    def prepare(self, source: DataSource, config: TrainConfig) -> Run:
        """Prepare a run. A dataset of raw texts is created on this machine."""
        values = config.values()
        if values.get("similarity") or values.get("analogy"):
            raise ShoalError("--similarity and --analogy are not supported with --hosts; train with --local")
        if (vectors := values.get("embeddings")) is not None and not is_s3(vectors):
            raise ShoalError(
                f"hosts cannot read --embeddings {vectors}, a file of this machine; copy it to S3, or train "
                "with --local"
            )
        prepared = source.prepare(self, config)
        if prepared.readers or prepared.local_path is None:
            raise ShoalError("--hosts does not support streams; use --local or --deployment")
        return HostsRun(self, prepared, config)


class HostsLaunch(Launch):
    """Launch of a run on hosts."""

    when_silent = "the log of the agent is agent.log on its host, in the folder of ~/.shoal with the name of the node"
    are_working = False
    """True if ranks are running on a host."""

    def require_free(self, run: str) -> None:
        if self.are_working:
            raise ShoalError(
                f"the training run {run} uses these hosts; wait until it ends, or repeat its command and press Ctrl-C"
            )


class HostsRun(AgentRun):
    """Run on hosts."""

    look_seconds = 3.0

    def __init__(self, place: HostsPlace, prepared: Prepared, config: TrainConfig) -> None:
        self.config, self.prepared, self._place = config, prepared, place
        self.hosts, self._code = HostGroup(place.file), CodePayload()
        self.store = store_of(self.hosts)
        self.launch_options = place.launch_options
        self._launch: HostsLaunch | None = None
        self._data = ""
        self._heartbeats: dict[str, tuple[str, float, float]] = {}
        """For each host: the tag of its last heartbeat, the monotonic time at which the tag changed, and the seconds to
        wait before the next restart of the agent.
        """

    @contextmanager
    def resources(self) -> Iterator[None]:
        """Connect to the hosts for a block, and send them the code and the dataset."""
        assert self.prepared.local_path is not None
        with self.hosts:
            reporter().stage("connect")
            self.hosts.on_all(self._code.install)
            self._data = _send_dataset(self.store, self.prepared.local_path)
            yield

    @contextmanager
    def started(self) -> Iterator[None]:
        """Claim the hosts, and start their agents. A closed terminal detaches the command from the run."""
        reporter().stage("start the agents")
        runs = RequestedRuns(self.store, _GROUP)
        launch = self._launch = HostsLaunch(runs, runs.unfinished() if self.config.resume else runs.new_name())
        hosts = self.hosts.file.hosts
        launch.are_working = launch.requests.active_request() is not None and any(
            each["works"] for each in self.hosts.on_all(partial(self._call_agent, "--ask"))
        )
        try:
            launch.claim(
                self.launch_options,
                force=self.config.force,
                trainers=len(hosts),
                nodes=tuple(each.instance for each in hosts),
                share=None,
                options=options_of(self.config),
                dataset=self._data,
            )
            if launch.end() is None:
                self.hosts.on_all(self.start_agent)
            launch.start([each.instance for each in hosts])
            with self._detaching():
                yield
        except (KeyboardInterrupt, ShoalError) as error:
            if isinstance(error, LostError) and launch.request.ready:
                raise Detached(f"{error}; the run continues; to follow it, repeat the command") from error
            if not launch.already_started:  # without the request, the agents end the run of this command
                with suppress(ShoalError):
                    launch.forget()
            raise

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
                *("--group", _GROUP, "--store", self.store.name, "--instance", host.instance),
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
                f"{self._place.file.path}: python=/path"
            )
        if unable := answer.get("unable"):
            raise ShoalError(
                f"{host.label} cannot use {self.store.name}: {str(unable).rstrip('.')}; the host needs its own AWS "
                "credentials, from a role or in its ~/.aws, with permission to list, read, write and delete objects"
            )
        if (other := answer.get("other")) not in (None, self.store.name):
            raise ShoalError(
                f"{host.label}: a training run in a different folder, {other}, uses this host; wait until it ends"
            )
        if not isinstance(answer.get("works"), bool):
            last = (errors.strip() or output.strip()).splitlines()[-1:] or ["it printed nothing"]
            raise ShoalError(f"{host.label}: its agent does not start: {last[0]}")
        return answer

    def detached_fields(self) -> Mapping[str, Any]:
        return {**super().detached_fields(), "hosts": self._place.name}

    def wait_for_data(self) -> None:
        reporter().stage("copy the dataset to the hosts")
        super().wait_for_data()

    def look_at_nodes(self) -> None:
        """Restart agents that send no heartbeats: their host has rebooted, or the agent has exited.

        The run continues undisturbed if the agent sends heartbeats again within GONE_SECONDS.
        """
        now, heartbeats = time.monotonic(), self.store.list(names.NODES)
        for host in self.hosts.file.hosts:
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

    def collect(self, *, stopped: bool) -> RunResult:
        with self.hosts:
            return super().collect(stopped=stopped)

    @property
    def launch(self) -> HostsLaunch:  # type: ignore[override]
        """Launch of the run. It exists only after `started` has claimed the hosts."""
        assert self._launch is not None
        return self._launch


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
