"""Hosts of one's own as a place, reached by SSH: the agents of a deployment's nodes, with a folder that all hosts share
or a bucket of the user's in the place of the deployment's. It costs nothing that is known here."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.agent import documents
from bootstrap.agent.folder import Folder
from bootstrap.agent.store import Bucket, Store
from bootstrap.aws.retry import is_credentials_error, retrying
from bootstrap.hosts.connection import Connection, LostError
from bootstrap.hosts.group import HostGroup
from bootstrap.hosts.hosts_file import HostsFile
from bootstrap.hosts.payload import CodePayload
from bootstrap.interrupt import Detached
from bootstrap.progress import Bars
from bootstrap.training.places.followed import AgentRun
from bootstrap.training.places.launch import DEFAULT, Launch, LaunchOptions, RequestedRuns, options_of
from bootstrap.training.places.place import Ended, Place, Run
from bootstrap.training.sources.source import Prepared, Source
from common.errors import DataError, ShoalError, UsageError
from common.json_values import parse_json_object
from corpus.dataset import open_dataset
from corpus.layout import DATASET_NAME
from corpus.reading import s3
from corpus.reading.s3 import is_s3, place_of
from trainer.config import TrainConfig

_GROUP = "hosts"
"""What the agents of hosts call theirs, of which a folder or a bucket has one."""
_SILENT_SECONDS = 8.0
"""After which the agent of a host that is not heard is started again; after each try it is twice as long."""
_MOST_SILENT_SECONDS = 300.0


class OnHosts(Place):
    pause = 1.0

    def __init__(self, file: HostsFile, wishes: LaunchOptions = DEFAULT) -> None:
        self.file, self.wishes, self.name = file, wishes, str(file.path)
        self.options = {"hosts": (str(file.path),)}

    def dataset(self, address: str | None, bars: Bars) -> str:  # noqa: ARG002
        """The path of a dataset on this machine, which can be used."""
        if address is None:
            raise UsageError(
                "--hosts needs --data FILE, a dataset made by `shoal preprocess`, or --input FILE...: texts"
            )
        with open_dataset(Path(address)):
            return address

    def prepare(self, source: Source, config: TrainConfig, bars: Bars) -> Run:
        """Make datasets of texts here."""
        if config.similarity or config.analogy:
            raise ShoalError("sets of words are files here, which hosts do not have; train with --local")
        if config.embeddings is not None and not is_s3(config.embeddings):
            raise ShoalError(
                f"--embeddings names {config.embeddings}, which hosts do not have; copy it to S3, where they can read "
                "it, or train with --local"
            )
        prepared = source.prepare(self, config, bars)
        if prepared.readers or prepared.here is None:
            raise ShoalError("a stream cannot be learnt with --hosts; use --local or --deployment")
        return HostsRun(self, prepared, config)


class HostsLaunch(Launch):
    when_silent = "its log is agent.log, in a folder of that name in ~/.shoal of its host"
    are_working = False
    """Whether a training runs on a host."""

    def require_free(self, run: str) -> None:
        if self.are_working:
            raise ShoalError(
                f"a training uses these hosts: {run}; wait until it has ended, or type its command again and then "
                "Ctrl-C, which stops it"
            )


class HostsRun(AgentRun):
    look_seconds = 3.0

    def __init__(self, place: OnHosts, prepared: Prepared, config: TrainConfig) -> None:
        self.config, self.prepared, self._place = config, prepared, place
        self.hosts, self._code = HostGroup(place.file), CodePayload()
        self.store = store_of(self.hosts)
        self.wishes = place.wishes
        self._launch: HostsLaunch | None = None
        self._data = ""
        self._heard: dict[str, tuple[str, float, float]] = {}
        """Of each host's beat the tag, since when that is unchanged, and the pause before the next try."""

    @contextmanager
    def resources(self, bars: Bars) -> Iterator[None]:
        """The connections; code and dataset are sent."""
        assert self.prepared.here is not None
        with self.hosts:
            bars.stage("connect", 0)
            self.hosts.on_all(self._code.install)
            self._data = _send_dataset(self.store, self.prepared.here, bars)
            yield

    @contextmanager
    def started(self, bars: Bars) -> Iterator[None]:
        """Claim the hosts, and start their agents. A closed terminal leaves the run to itself."""
        bars.stage("start the agents", 0)
        runs = RequestedRuns(self.store, _GROUP)
        launch = self._launch = HostsLaunch(runs, runs.unfinished() if self.config.resume else runs.new_name())
        hosts = self.hosts.file.hosts
        launch.are_working = launch.wanted.at_work() is not None and any(
            each["works"] for each in self.hosts.on_all(partial(self._call_agent, "--ask"))
        )
        try:
            launch.claim(
                self.wishes,
                bars,
                anew=self.config.force,
                trainers=len(hosts),
                nodes=tuple(each.instance for each in hosts),
                share=None,
                options=options_of(self.config),
                dataset=self._data,
            )
            if launch.end() is None:
                self.hosts.on_all(self.start_agent)
            launch.begin([each.instance for each in hosts])
            with self._left_to_itself():
                yield
        except (KeyboardInterrupt, ShoalError) as error:
            if isinstance(error, LostError) and launch.request.ready:
                raise Detached(f"{error}; the run goes on, and the same command follows it") from error
            if not launch.found:  # the agents end what they have begun for this command
                with suppress(ShoalError):
                    launch.forget()
            raise

    def start_agent(self, connection: Connection) -> None:
        """Start a host's agent, unless it runs. Raises ShoalError where it cannot run there, and LostError."""
        self._call_agent("", connection)

    def _call_agent(self, option: str, connection: Connection) -> dict[str, Any]:
        """Have a host start its agent or, with an option, tell of it."""
        host, gpus = connection.host, connection.host.gpus
        status, output, errors = connection.run(
            (
                *(
                    "env",
                    f"PYTHONPATH={self._code.install(connection)}",
                    host.python,
                    "-P",
                    "-m",
                    "bootstrap.agent.host",
                ),
                *("--group", _GROUP, "--store", self.store.name, "--instance", host.instance),
                *("--address", connection.address, *(("--gpus", str(gpus)) if gpus else ()), *filter(None, (option,))),
            )
        )
        try:
            told = parse_json_object(output) if not status else {}
        except DataError:
            told = {}
        if isinstance(missing := told.get("missing"), list) and missing:
            raise ShoalError(
                f"{host.label}: {host.python} has no {missing[0]}; install what "
                "bootstrap/nodes/gpu/requirements.txt lists and PyTorch, or name another Python in "
                f"{self._place.file.path}: python=/path"
            )
        if unable := told.get("unable"):
            raise ShoalError(
                f"{host.label} cannot use {self.store.name}: {str(unable).rstrip('.')}; it needs AWS "
                "credentials of its own, of a role or in its ~/.aws, that may list, read, write and delete there"
            )
        if (other := told.get("other")) not in (None, self.store.name):
            raise ShoalError(f"{host.label}: a training in another folder, {other}, uses it; wait until that has ended")
        if not isinstance(told.get("works"), bool):
            last = (errors.strip() or output.strip()).splitlines()[-1:] or ["it said nothing"]
            raise ShoalError(f"{host.label}: its agent does not start: {last[0]}")
        return told

    def left(self) -> Mapping[str, Any]:
        return {**super().left(), "hosts": self._place.name}

    def wait_for_data(self, bars: Bars) -> None:
        bars.stage("copy the dataset to the hosts", 0)
        super().wait_for_data(bars)

    def look_at_nodes(self, bars: Bars) -> None:
        """Start the agents again that are not heard: of a host that was started anew, or whose agent was killed. One
        that is back within GONE_SECONDS costs the run nothing."""
        now, beats = time.monotonic(), self.store.list(documents.NODES)
        for host in self.hosts.file.hosts:
            beat = beats.get(documents.heartbeat_key(host.instance))
            tag = beat.tag if beat else ""
            known, since, pause = self._heard.setdefault(host.instance, (tag, now, _SILENT_SECONDS))
            if tag != known:
                self._heard[host.instance] = (tag, now, _SILENT_SECONDS)
            elif now - since > pause:
                try:
                    self.start_agent(self.hosts.connect(host))
                except ShoalError as error:
                    if pause == _SILENT_SECONDS:
                        bars.note(f"{error}; it is looked for again and again")
                self._heard[host.instance] = (tag, time.monotonic(), min(2 * pause, _MOST_SILENT_SECONDS))

    def collect(self, bars: Bars, *, stopped: bool) -> Ended:
        with self.hosts:
            return super().collect(bars, stopped=stopped)

    @property
    def launch(self) -> HostsLaunch:  # type: ignore[override]
        """The launch, once it is claimed."""
        assert self._launch is not None
        return self._launch


def store_of(hosts: HostGroup) -> Store:
    """What the hosts share: a folder, or a bucket that each of them and the command reach with credentials of their
    own. Raises LostError where it cannot be used."""
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
            raise LostError(f"{why}; renew them, or set AWS_PROFILE to others") from error
        raise LostError(str(error)) from error


def _send_dataset(store: Store, path: Path, bars: Bars) -> str:
    """Send a dataset, if it is not there; returns its key. Raises DataError for one that cannot be used."""
    with open_dataset(path) as opened:
        key = f"datasets/{opened.digest}/{DATASET_NAME}"
    size = path.stat().st_size
    bars.stage("send the dataset", size, "B")
    if store.size(key) != size:
        store.put(path, key, bars.add)
    bars.at(size)
    return key
