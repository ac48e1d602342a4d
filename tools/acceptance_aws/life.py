"""The steps of a run. Whatever happens, it destroys the deployment, and removes what it made in the account."""

import json
import math
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from botocore.exceptions import BotoCoreError, ClientError
from shoal_guard.errors import SweepError

from bootstrap.aws import cdk
from bootstrap.aws.account import Account
from bootstrap.aws.policies import arn, execution
from bootstrap.cli.output import say
from bootstrap.demo.reviews import write_reviews
from bootstrap.interrupt import ENDING_SIGNALS
from bootstrap.lifecycle.rules.account import is_prepared
from common.errors import ShoalError
from corpus.layout import DATASET_NAME
from infra import policies
from tools.acceptance_aws.account import Setup
from tools.acceptance_aws.report import DONE, FAILED, SKIPPED, Report, Step

NEAR = 0.9
"""The share of the limit at which a run ends."""
_NAME = "acceptance"
"""Of the topology that is deployed, by which a run knows its deployment again."""
_TEXTS = 3000
_LEARNING = {"model": "lstm", "epochs": 100, "global-batch": 32}
"""No search, of which a lost node loses all. Small steps, of which a GPU makes hardly more a second than a CPU does: on
either they last about half a minute."""
_TRAINED_SECONDS = 10.0
"""For which a node trains before it is ended."""
_ENDED = ("finished", "stopped", "failed")
"""The states of a run that has ended."""
_POLL_SECONDS, _LOOK_SECONDS = 2.0, 60.0
"""Between two looks at the training, and at the bill while a command runs."""
_MOST_SECONDS = 1800.0
"""For the training to be seen at work, and again after its node was ended."""
_STOP_SECONDS = 300.0
_SETTLE_SECONDS = 15.0
"""Until a new policy holds in all services."""
_LAST_LINES = 12
_LEAVE_OUT = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
"""The CDK's command prefers a profile to the keys of the environment."""


class StepFailedError(Exception):
    """A step has failed; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a run is to do. source: the topology's file. folder: for the report, the logs and the model."""

    source: Path
    deployment: str
    region: str
    max_dollars: float
    hours: float
    folder: Path


def counted(status: Mapping[str, Any], now: datetime) -> float | None:
    """What a deployment has cost at most, by `shoal status --json`: what its guard counted, and all at work since."""
    hourly = status.get("dollars_an_hour_at_most")
    if hourly is None or not status.get("created"):
        return None
    since = datetime.fromisoformat(status["as_of"] or status["created"])
    return float(status["spent"] or 0.0) + float(hourly) * max(0.0, (now - since) / timedelta(hours=1))


class Life:
    """A run: `account` is that of whoever started it, an administrator; `shoal` runs as the role."""

    def __init__(self, wanted: Wanted, report: Report, account: Account) -> None:
        self._wanted, self._report, self._account = wanted, report, account
        self._setup = Setup(account)
        self._deployed = False

    def run(self) -> None:
        """All steps; the report has what happened."""
        before = {number: signal.signal(number, _interrupt) for number in ENDING_SIGNALS}
        try:
            self._live()
            self._report.complete = True
        except (StepFailedError, KeyboardInterrupt) as error:
            self._report.why = self._masked(str(error) or "interrupted")
            say(f"acceptance: {self._report.why}; what was made is now destroyed")
        finally:
            _ignore_signals()
            self._end()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _live(self) -> None:
        wanted, name, model = self._wanted, self._wanted.deployment, self._wanted.folder / "model"
        self._do("policies and role", self._setup.make)
        time.sleep(_SETTLE_SECONDS)
        self._prepare()
        if self._earlier():
            self._shoal("destroy", *self._all_of_it(), name="destroy what an earlier run left")
        own, reviews = wanted.folder / f"{_NAME}.yaml", wanted.folder / "reviews.json"
        write_reviews(reviews, texts=_TEXTS)
        own.write_text(yaml.safe_dump(self._topology()), "utf-8")
        self._deployed = True
        self._shoal("deploy", os.fspath(own), "--deployment", name, "--yes")
        learning = [part for option, value in _LEARNING.items() for part in (f"--{option}", str(value))]
        if self._topology().get("preprocessing"):
            self._shoal("preprocess", "--deployment", name, "--input", os.fspath(reviews))
        else:
            data = wanted.folder / "data"
            self._shoal("preprocess", "--local", "--input", os.fspath(reviews), "--output", os.fspath(data))
            learning += ["--data", os.fspath(data / DATASET_NAME)]
        limit = ("--max-dollars", f"{wanted.max_dollars:g}")
        self._shoal("train", "--deployment", name, "--output", os.fspath(model), *learning, *limit, "--detach")
        if not self._topology().get("managed"):  # whose machines are AWS's
            self._do("end a node while it trains", self._end_a_node)
            self._do("another node goes on", self._await_next_attempt)
        self._shoal("attach", name, "--output", os.fspath(model))

    def _earlier(self) -> bool:
        """Whether the deployment of a killed run is there. Raises StepFailedError where it is somebody else's."""
        status = self._status()
        if status.get("state") and status["topology"] != _NAME:
            raise StepFailedError(f"the deployment {self._wanted.deployment} is no acceptance run's; take another name")
        return bool(status.get("state"))

    def _all_of_it(self) -> tuple[str, ...]:
        """The arguments of `shoal destroy`."""
        return (self._wanted.deployment, "--region", self._wanted.region, "--yes", "--stop-runs", "--delete-runs")

    def _topology(self) -> dict[str, Any]:
        """The topology, whose guard ends it at the same limits, also where this machine is off."""
        found: dict[str, Any] = yaml.safe_load(self._wanted.source.read_text("utf-8"))
        guard = {"budget": self._wanted.max_dollars, "max_hours": math.ceil(self._wanted.hours)}
        return {
            **found,
            "permissions_boundary": arn(self._account, policies.BOUNDARY),
            "guard": {**found.get("guard", {}), **guard},
        }

    def _prepare(self) -> None:
        if is_prepared(self._account):
            detail = "the region was prepared already; its execution policies are those that it has"
            self._note(Step(name="cdk bootstrap", outcome=SKIPPED, detail=detail))
            return
        place = f"aws://{self._setup.number}/{self._wanted.region}"
        words = ["cdk", *cdk.BOOTSTRAP, place, *cdk.limits(execution(self._account))]
        self._command("cdk bootstrap", words, self._environment({}), cwd=self._wanted.folder)

    # The training

    def _end_a_node(self) -> str:
        working = self._await(lambda told: [name for name, each in told.items() if each["phase"] == "run"], "trains")
        time.sleep(_TRAINED_SECONDS)
        self._account.client("ec2").terminate_instances(InstanceIds=working[:1])
        return f"terminated {working[0]}, one of {len(working)} that train"

    def _await_next_attempt(self) -> str:
        [node, *_] = self._await(
            lambda told: [
                name for name, each in told.items() if each["attempt"] > 1 and each["phase"] in ("run", "end", "done")
            ],
            "trains again",
        )
        return f"{node} trains in another attempt"

    def _await(self, found: Callable[[Mapping[str, Any]], list[str]], what: str) -> list[str]:
        """The nodes that are found in what all nodes tell, as soon as there are any."""
        until = time.monotonic() + _MOST_SECONDS
        while time.monotonic() < until:
            status = self._status()
            self._require_within(status)
            told = {name: each for group in status["groups"] for name, each in group["told"].items()}
            if seen := found({name: each for name, each in told.items() if isinstance(each, dict)}):
                return seen
            ended = [each["state"] for each in status["runs"] or () if each["state"] in _ENDED]
            if ended:
                raise StepFailedError(f"the training is {ended[0]}, before a node of it {what}")
            time.sleep(_POLL_SECONDS)
        raise StepFailedError(f"after {_MOST_SECONDS / 60:.0f} minutes no node {what}")

    # Commands

    def _status(self) -> dict[str, Any]:
        """What `shoal status` tells; empty where it tells nothing."""
        found = subprocess.run(
            ["shoal", "status", self._wanted.deployment, "--region", self._wanted.region, "--json"],
            env=self._environment(self._setup.environment()),
            capture_output=True,
            check=False,
            text=True,
        )
        return {"groups": [], "runs": [], **(json.loads(found.stdout) if found.returncode == 0 else {})}

    def _require_within(self, status: Mapping[str, Any]) -> None:
        """Take down what the deployment has cost. Raises StepFailedError where that comes near the limit."""
        if (dollars := counted(status, datetime.now(UTC))) is None:
            return
        self._report.counted = dollars
        if dollars >= NEAR * self._wanted.max_dollars:
            raise StepFailedError(f"the deployment has cost ${dollars:.2f}, near the limit")

    def _environment(self, keys: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not keys or name not in _LEAVE_OUT}
        tools = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
        region = {"AWS_REGION": self._wanted.region, "AWS_DEFAULT_REGION": self._wanted.region}
        return {**kept, "PATH": tools, **region, **keys}

    def _shoal(self, command: str, *arguments: str, name: str = "", as_role: bool = True) -> None:
        keys = self._setup.environment() if as_role else {}
        self._command(name or f"shoal {command}", ["shoal", command, *arguments], self._environment(keys), cwd=cdk.ROOT)

    def _command(self, name: str, words: list[str], environment: Mapping[str, str], *, cwd: Path) -> None:
        """Run a command to its end; Ctrl-C, and a bill near the limit, end it first."""
        with self._step(name, shlex.join(words)) as step:
            log = self._wanted.folder / "logs" / f"{len(self._report.steps):02}-{name.replace(' ', '-')}.log"
            log.parent.mkdir(exist_ok=True)
            with log.open("wb") as written:
                running = subprocess.Popen(
                    words, env=environment, cwd=cwd, stdout=written, stderr=subprocess.STDOUT, process_group=0
                )
            try:
                while _still_runs(running, _LOOK_SECONDS):
                    if self._deployed:
                        self._require_within(self._status())
            finally:
                _stop(running)
            if running.returncode:
                last = log.read_text("utf-8", "replace").splitlines()[-_LAST_LINES:]
                step.detail = self._masked("\n".join([f"exit status {running.returncode}", *last]))
                raise StepFailedError(f"{name} failed; see {log}")
        if self._deployed:
            self._require_within(self._status())

    def _do(self, name: str, act: Callable[[], str]) -> None:
        with self._step(name, "") as step:
            step.detail = self._masked(act())

    @contextmanager
    def _step(self, name: str, command: str) -> Iterator[Step]:
        """Time a step, and put it down, with the reason where it fails."""
        step, begun = Step(name=name, command=self._masked(command)), time.monotonic()
        say(f"acceptance: {name} ...")
        try:
            yield step
            step.outcome = DONE
        except (ShoalError, SweepError, ClientError, BotoCoreError, StepFailedError) as error:
            step.detail = step.detail or self._masked(str(error))
            raise StepFailedError(f"{name} failed: {error}") from error
        except KeyboardInterrupt:
            step.detail = "interrupted"
            raise
        finally:
            step.seconds = time.monotonic() - begun
            self._note(step)

    def _note(self, step: Step) -> None:
        self._report.steps.append(step)
        self._report.write(self._wanted.folder)
        say(f"acceptance: {step.name}: {step.outcome}, {step.seconds:.0f} s")

    def _masked(self, text: str) -> str:
        return text.replace(self._setup.number, "ACCOUNT").replace(os.fspath(self._wanted.folder), "FOLDER")

    # The end

    def _end(self) -> None:
        left = []
        if self._deployed and not self._destroy(as_role=True) and not self._destroy(as_role=False):
            name = self._wanted.deployment
            left.append(f"the deployment {name}: `shoal destroy {name}` lists what is left")
        try:
            left += self._setup.remove()
        except BotoCoreError as error:
            left.append(f"the role: {error}")
        self._report.left = list(map(self._masked, left))
        self._report.ended = datetime.now(UTC).isoformat(timespec="seconds")
        self._report.write(self._wanted.folder)

    def _destroy(self, *, as_role: bool) -> bool:
        """Destroy the deployment, and prove that nothing is left; returns whether both succeeded."""
        name = "shoal destroy" if as_role else "shoal destroy, as whoever started this"
        self._deployed = False  # its bill ends nothing any more
        try:
            self._shoal("destroy", *self._all_of_it(), name=name, as_role=as_role)
        except (StepFailedError, ClientError, BotoCoreError):
            return False
        return self._report.steps[-1].outcome != FAILED


def _interrupt(_number: int, _frame: Any) -> None:
    """End what runs; from now on nothing else ends the destruction."""
    _ignore_signals()
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    for number in ENDING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _still_runs(running: "subprocess.Popen[bytes]", seconds: float) -> bool:
    try:
        running.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def _stop(running: "subprocess.Popen[bytes]") -> None:
    """Have a command that still runs end in order, and else at once."""
    if running.poll() is None:
        running.send_signal(signal.SIGINT)
        if _still_runs(running, _STOP_SECONDS):
            running.kill()
            running.wait()
