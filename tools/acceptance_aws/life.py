"""Runs the steps of an acceptance run. Whether or not they succeed, destroys the deployment and removes the role."""

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
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from botocore.exceptions import BotoCoreError, ClientError

from common.errors import ShoalError
from corpus.layout import DATASET_NAME
from infra import policies
from infra.document import StrictLoader
from shoal.aws import cdk
from shoal.aws.account import Account
from shoal.aws.policies import arn, execution
from shoal.cli.output import say
from shoal.demo.reviews import write_reviews
from shoal.deployments.rules.account import is_prepared
from shoal.interrupt import ENDING_SIGNALS
from tools.acceptance_aws.account import Setup
from tools.acceptance_aws.beliefs import CONFIRMED, CONTRADICTED, NOT_CHECKED, check_all
from tools.acceptance_aws.report import DONE, FAILED, SKIPPED, Report, Step

NEAR_LIMIT = 0.9
"""A run stops if its cost reaches this fraction of the dollar limit."""
_NAME = "acceptance"
"""Name of the deployed topology. A deployment of a topology with this name was created by an acceptance run."""
_TEXTS = 3000
_LEARNING = {"model": "lstm", "epochs": 100, "global-batch": 32}
"""Options of `shoal train`. Batches are so small that a GPU is hardly faster than a CPU, and the run takes about half a
minute on both."""
_SECONDS_BEFORE_TERMINATION = 10.0
"""Seconds that a node trains before the run terminates it."""
_END_STATES = ("finished", "stopped", "failed")
"""States of a training run that has ended."""
_POLL_SECONDS, _COST_CHECK_SECONDS = 2.0, 60.0
"""Seconds between checks of the training run, and between checks of the cost while a command runs."""
_TRAINING_TIMEOUT_SECONDS = 1800.0
"""Maximum seconds until nodes train, and until nodes train again after one was terminated."""
_STOP_SECONDS = 300.0
_SETTLE_SECONDS = 15.0
"""Seconds until all services apply a new policy."""
_LAST_LINES = 12
_LEAVE_OUT = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
"""Variables that commands must not see, because the CDK command prefers a profile to the keys in the environment."""


class StepFailedError(Exception):
    """A step failed. The message is the reason."""


def maximum_cost(status: Mapping[str, Any], now: datetime) -> float | None:
    """Return the maximum cost of a deployment so far in dollars, from the output of `shoal status --json`.

    The cost is the guard's last count, plus the price of all machines since this count. Returns None if the cost is
    unknown.
    """
    hourly = status.get("dollars_an_hour_at_most")
    if hourly is None or not status.get("created"):
        return None
    since = datetime.fromisoformat(status["as_of"] or status["created"])
    return float(status["spent"] or 0.0) + float(hourly) * max(0.0, (now - since) / timedelta(hours=1))


class AcceptanceRun:
    """Acceptance run. The administrator who started it has access to `account`. Shoal commands run as the role of the
    run."""

    def __init__(self, report: Report, account: Account, *, source: Path, folder: Path) -> None:
        """Prepare a run of the topology in the file `source`. Report, logs and model are written to `folder`."""
        self._report, self._account = report, account
        self._source, self._folder = source, folder
        self._setup = Setup(account)
        self._deployed = False

    def run(self) -> None:
        """Run all steps, and record the results in the report."""
        before = {number: signal.signal(number, _interrupt) for number in ENDING_SIGNALS}
        try:
            self._live()
            self._report.complete = True
        except (StepFailedError, KeyboardInterrupt) as error:
            self._report.why = self._masked(str(error) or "interrupted")
            say(f"acceptance: {self._report.why}; now the run destroys everything that it created")
        finally:
            _ignore_signals()
            self._end()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _live(self) -> None:
        name, model = self._report.deployment, self._folder / "model"
        self._run_step("beliefs of the emulator", self._check_beliefs)
        self._run_step("policies and role", self._setup.create)
        time.sleep(_SETTLE_SECONDS)
        self._bootstrap_region()
        if self._deployment_exists():
            self._shoal("destroy", *self._destroy_arguments(), name="destroy the deployment of an earlier run")
        own, reviews = self._folder / f"{_NAME}.yaml", self._folder / "reviews.json"
        write_reviews(reviews, texts=_TEXTS)
        own.write_text(yaml.safe_dump(self._topology()), "utf-8")
        self._deployed = True
        self._shoal("deploy", os.fspath(own), "--deployment", name, "--yes")
        learning = [part for option, value in _LEARNING.items() for part in (f"--{option}", str(value))]
        if self._topology().get("preprocessing") == {"on": "node"}:
            learning += ["--input", os.fspath(reviews)]
        elif self._topology().get("preprocessing"):
            self._shoal("preprocess", "--deployment", name, "--input", os.fspath(reviews))
        else:
            data = self._folder / "data"
            self._shoal("preprocess", "--local", "--input", os.fspath(reviews), "--output", os.fspath(data))
            learning += ["--data", os.fspath(data / DATASET_NAME)]
        limit = ("--max-dollars", f"{self._report.max_dollars:g}")
        self._shoal("train", "--deployment", name, "--output", os.fspath(model), *learning, *limit, "--detach")
        if not self._topology().get("managed"):  # leave out managed training, where AWS replaces lost machines
            self._run_step("terminate a node while it trains", self._terminate_node)
            self._run_step("another node continues", self._await_next_attempt)
        self._shoal("attach", name, "--output", os.fspath(model))

    def _check_beliefs(self) -> str:
        for result in check_all(self._account):
            self._report.beliefs.append(replace(result, detail=self._masked(result.detail)))
        outcomes = [each.outcome for each in self._report.beliefs]
        return ", ".join(f"{outcomes.count(each)} {each}" for each in (CONFIRMED, CONTRADICTED, NOT_CHECKED))

    def _deployment_exists(self) -> bool:
        """Return whether the deployment of a killed run exists. Raises StepFailedError if no acceptance run created the
        deployment with this name."""
        status = self._status()
        if status.get("state") and status["topology"] != _NAME:
            raise StepFailedError(
                f"the deployment {self._report.deployment} was not created by an acceptance run; "
                "choose a different name"
            )
        return bool(status.get("state"))

    def _destroy_arguments(self) -> tuple[str, ...]:
        """Return the arguments of `shoal destroy`."""
        return (
            self._report.deployment,
            "--region",
            self._report.region,
            "--yes",
            "--stop-runs",
            "--delete-runs",
        )

    def _topology(self) -> dict[str, Any]:
        """Return the topology, with the limits of this run also as limits of the guard. So the guard deletes the
        deployment even if this machine is off."""
        found: dict[str, Any] = StrictLoader(self._source.read_text("utf-8")).get_single_data()
        guard = {"budget": self._report.max_dollars, "max_hours": math.ceil(self._report.hours)}
        return {
            **found,
            "permissions_boundary": arn(self._account, policies.BOUNDARY),
            "guard": {**found.get("guard", {}), **guard},
        }

    def _bootstrap_region(self) -> None:
        if is_prepared(self._account):
            detail = "the region was prepared before, so the run did not change its execution policies"
            self._record(Step(name="cdk bootstrap", outcome=SKIPPED, detail=detail))
            return
        place = f"aws://{self._setup.number}/{self._report.region}"
        words = ["cdk", *cdk.BOOTSTRAP, place, *cdk.role_limits(execution(self._account))]
        self._command("cdk bootstrap", words, self._environment({}), cwd=self._folder)

    # The training

    def _terminate_node(self) -> str:
        working = self._await(
            lambda statuses: [name for name, each in statuses.items() if each["phase"] == "run"], "trains"
        )
        time.sleep(_SECONDS_BEFORE_TERMINATION)
        self._account.client("ec2").terminate_instances(InstanceIds=working[:1])
        return f"terminated {working[0]}, one of {len(working)} that train"

    def _await_next_attempt(self) -> str:
        [node, *_] = self._await(
            lambda statuses: [
                name
                for name, each in statuses.items()
                if each["attempt"] > 1 and each["phase"] in ("run", "end", "done")
            ],
            "trains again",
        )
        return f"{node} trains in the next attempt"

    def _await(self, found: Callable[[Mapping[str, Any]], list[str]], what: str) -> list[str]:
        """Wait until `found`, called with the statuses by node, returns nodes. Return these nodes. `what` completes the
        message "no node ..."."""
        until = time.monotonic() + _TRAINING_TIMEOUT_SECONDS
        while time.monotonic() < until:
            status = self._status()
            self._require_within(status)
            statuses = {name: each for group in status["groups"] for name, each in group["statuses"].items()}
            if seen := found({name: each for name, each in statuses.items() if isinstance(each, dict)}):
                return seen
            ended = [each["state"] for each in status["runs"] or () if each["state"] in _END_STATES]
            if ended:
                raise StepFailedError(f"the run is {ended[0]}, but no node {what}")
            time.sleep(_POLL_SECONDS)
        raise StepFailedError(f"after {_TRAINING_TIMEOUT_SECONDS / 60:.0f} minutes no node {what}")

    # Commands

    def _status(self) -> dict[str, Any]:
        """Return the output of `shoal status --json`. If the command fails, return a status without groups and runs."""
        found = subprocess.run(
            ["shoal", "status", self._report.deployment, "--region", self._report.region, "--json"],
            env=self._environment(self._setup.environment()),
            capture_output=True,
            check=False,
            text=True,
        )
        return {"groups": [], "runs": [], **(json.loads(found.stdout) if found.returncode == 0 else {})}

    def _require_within(self, status: Mapping[str, Any]) -> None:
        """Record the cost of the deployment in the report. Raises StepFailedError if the cost is near the limit."""
        if (dollars := maximum_cost(status, datetime.now(UTC))) is None:
            return
        self._report.counted = dollars
        if dollars >= NEAR_LIMIT * self._report.max_dollars:
            raise StepFailedError(f"the deployment has cost ${dollars:.2f}, near the limit")

    def _environment(self, keys: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not keys or name not in _LEAVE_OUT}
        tools = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
        region = {"AWS_REGION": self._report.region, "AWS_DEFAULT_REGION": self._report.region}
        return {**kept, "PATH": tools, **region, **keys}

    def _shoal(self, command: str, *arguments: str, name: str = "", as_role: bool = True) -> None:
        keys = self._setup.environment() if as_role else {}
        self._command(name or f"shoal {command}", ["shoal", command, *arguments], self._environment(keys), cwd=cdk.ROOT)

    def _command(self, name: str, words: list[str], environment: Mapping[str, str], *, cwd: Path) -> None:
        """Run a command until it exits. Ctrl-C, or a cost near the limit, stops the command earlier."""
        with self._step(name, shlex.join(words)) as step:
            log = self._folder / "logs" / f"{len(self._report.steps):02}-{name.replace(' ', '-')}.log"
            log.parent.mkdir(exist_ok=True)
            with log.open("wb") as written:
                running = subprocess.Popen(
                    words, env=environment, cwd=cwd, stdout=written, stderr=subprocess.STDOUT, process_group=0
                )
            try:
                while _still_runs(running, _COST_CHECK_SECONDS):
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

    def _run_step(self, name: str, act: Callable[[], str]) -> None:
        with self._step(name, "") as step:
            step.detail = self._masked(act())

    @contextmanager
    def _step(self, name: str, command: str) -> Iterator[Step]:
        """Measure a step, and record it in the report. If it fails, record the reason."""
        step, started = Step(name=name, command=self._masked(command)), time.monotonic()
        say(f"acceptance: {name} ...")
        try:
            yield step
            step.outcome = DONE
        except (ShoalError, ClientError, BotoCoreError, StepFailedError) as error:
            step.detail = step.detail or self._masked(str(error))
            raise StepFailedError(f"{name} failed: {error}") from error
        except KeyboardInterrupt:
            step.detail = "interrupted"
            raise
        finally:
            step.seconds = time.monotonic() - started
            self._record(step)

    def _record(self, step: Step) -> None:
        self._report.steps.append(step)
        self._report.write(self._folder)
        say(f"acceptance: {step.name}: {step.outcome}, {step.seconds:.0f} s")

    def _masked(self, text: str) -> str:
        return text.replace(self._setup.number, "ACCOUNT").replace(os.fspath(self._folder), "FOLDER")

    # The end

    def _end(self) -> None:
        left = []
        if self._deployed and not self._destroy(as_role=True) and not self._destroy(as_role=False):
            name = self._report.deployment
            left.append(f"the deployment {name}: `shoal destroy {name}` lists what is left")
        try:
            left += self._setup.remove()
        except BotoCoreError as error:
            left.append(f"the role: {error}")
        self._report.left = list(map(self._masked, left))
        self._report.ended = datetime.now(UTC).isoformat(timespec="seconds")
        self._report.write(self._folder)

    def _destroy(self, *, as_role: bool) -> bool:
        """Destroy the deployment, and check that nothing is left. Return whether the command and the check
        succeeded."""
        name = "shoal destroy" if as_role else "shoal destroy, as the administrator"
        self._deployed = False  # from here on, the cost must not stop a command
        try:
            self._shoal("destroy", *self._destroy_arguments(), name=name, as_role=as_role)
        except (StepFailedError, ClientError, BotoCoreError):
            return False
        return self._report.steps[-1].outcome != FAILED


def _interrupt(_number: int, _frame: Any) -> None:
    """Interrupt the current step. Ignore further signals, so that nothing interrupts the destruction of the
    deployment."""
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
    """Send SIGINT to a command that is still running. If it does not exit, kill it."""
    if running.poll() is None:
        running.send_signal(signal.SIGINT)
        if _still_runs(running, _STOP_SECONDS):
            running.kill()
            running.wait()
