"""Faults of nodes on AWS, made on a deployment of three spot nodes on an embedded AWS of this machine.

The first node serves the folder that all share. The command signs with an access key of its own, so that its session
can expire alone.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3

from benchmarks.fault_runs import HEADS, RANKS, Fault, Run, kill_and_type_again, measure, rows
from benchmarks.record import Log
from bootstrap.agent.channel import Bucket
from embedded.aws import REGION, EmbeddedAws
from embedded.faults.kinds import ExpiredCredentials, SpotInterruption
from embedded.permissions.credentials import USER
from embedded.processes import marked_processes
from embedded.watchdog import MARK
from infra import topology

_NAME = "faults"
_FIELDS = {"ACCESS_KEY_ID": "AccessKeyId", "SECRET_ACCESS_KEY": "SecretAccessKey"}
_NONE = "none, on nodes"
_TOPOLOGY = f"""description: Spot nodes of one GPU, the first of which serves the folder that they share
region: us-east-1
training:
  - {{instance_type: g5.xlarge, count: {RANKS}, market: spot}}
share: nfs
"""


class NodesRun(Run):
    """A training on nodes of the deployment."""

    def __init__(self, aws: EmbeddedAws, data: Path, output: Path, epochs: int) -> None:
        self.aws, self._data = aws, data
        key, secret = (aws.environment[f"AWS_{name}"] for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
        self._session = boto3.Session(key, secret, region_name=REGION)
        stack = self.client("cloudformation").describe_stacks(StackName=f"Shoal-{_NAME}")["Stacks"][0]
        outputs = {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}
        store = Bucket(outputs[topology.OUTPUT_DATA_BUCKET], self.client("s3"))
        made = self.client("iam").create_access_key(UserName=USER)["AccessKey"]
        self._keys = {f"AWS_{name}": made[field] for name, field in _FIELDS.items()}
        self._first = self._expired = ""
        super().__init__(store, output, epochs)

    def client(self, service: Any) -> Any:
        """A client of the embedded AWS."""
        return self._session.client(service, endpoint_url=self.aws.endpoint)

    @property
    def where(self) -> Sequence[object]:
        """As in `Run`."""
        return ["--deployment", _NAME, "--data", self._data]

    @property
    def environment(self) -> Mapping[str, str]:
        """As in `Run`."""
        return {**os.environ, **self.aws.environment, **self._keys}

    def left(self) -> int:
        """As in `Run`."""
        words = (Path(f"/proc/{each}/cmdline") for each in marked_processes(MARK, str(self.aws.folder)))
        return sum(b"-m\0trainer\0" in each.read_bytes() for each in words if each.exists())

    def reclaim_first(self) -> None:
        """Tell the first node that AWS ends it."""
        self._first = self.members()[0]
        self.aws.faults.add(SpotInterruption(instance=self._first))

    def end_first(self) -> None:
        """End the first node."""
        self.client("ec2").terminate_instances(InstanceIds=[self._first or self.members()[0]])

    def expire(self) -> None:
        """Let the session of the command expire."""
        self._expired = self.aws.faults.add(ExpiredCredentials(key=self._keys["AWS_ACCESS_KEY_ID"]))

    def renew(self) -> None:
        """Log in again, and type the command again."""
        self.aws.faults.lift(self._expired)
        self.type_again()


FAULTS: Mapping[str, Fault[NodesRun]] = {
    "spot notice": Fault(NodesRun.reclaim_first, NodesRun.end_first),
    "serving node gone": Fault(NodesRun.end_first),
    "credentials expired": Fault(NodesRun.expire, NodesRun.renew, lambda run: not run.lives(0), away=10.0),
    "command killed at random moments, on nodes": Fault(kill_and_type_again, again_and_again=True),
}


def on_nodes(names: Iterable[str], data: Path, epochs: int, log: Log) -> dict[str, dict[str, Any]]:
    """What faults cost on nodes."""
    found = dict[str, dict[str, Any]]()
    faults = {_NONE: Fault[NodesRun](lambda _: None), **{name: FAULTS[name] for name in names}}
    with TemporaryDirectory() as folder, _deployed(Path(folder)) as aws:
        for name, fault in faults.items():
            run = NodesRun(aws, data, Path(folder) / name.replace(" ", "-"), epochs)
            try:
                found[name] = measure(run, fault)
            finally:
                run.kill_command()
            log.say(f"{name}: {found[name]}")
    log.table(HEADS, list(rows(found, _NONE)))
    return found


@contextmanager
def _deployed(folder: Path) -> Iterator[EmbeddedAws]:
    """An embedded AWS with the deployment."""
    file = folder / f"{_NAME}.yaml"
    file.write_text(_TOPOLOGY)
    with EmbeddedAws(folder / "aws") as aws:
        words = [sys.executable, "-m", "bootstrap.cli.main", "deploy", str(file), "--yes"]
        done = subprocess.run(words, env={**os.environ, **aws.environment}, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr[-3000:])
        yield aws
