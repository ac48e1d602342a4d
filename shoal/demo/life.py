"""Runs a deployment from start to end on this machine: the real CDK app, jobs and trainer against the AWS emulator.

Every step runs the code of the corresponding command. The emulator's list calls show, service by service, which
resources were created and which are left.
"""

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from shoal_local_aws.account import raise_quotas
from shoal_local_aws.aws import ACCOUNT, REGION, EmbeddedAws
from shoal_local_aws.permissions import record

from common.display import plural
from common.errors import ShoalError
from common.private_folders import temporary_folder
from corpus.dataset_settings import DEFAULT
from corpus.reading.acceptance import DEFAULT_MAX_MALFORMED
from corpus.reading.inputs.finding import find_files
from corpus.reading.sources import Inputs
from experiments.records import read_runs
from experiments.report.page import make_page
from experiments.table import group_runs, make_rows, warnings
from infra import cost, topology
from infra.policies import BOUNDARY, POLICIES, USER
from shoal.aws import cdk, policies
from shoal.aws.account import Account
from shoal.aws.deployment import find_deployment
from shoal.backends.nodes import NodesBackend
from shoal.demo.reviews import WrittenReviews, write_reviews
from shoal.deployments.removal.inventory import inventory, left_over
from shoal.preprocessing.preprocess import preprocess_on_deployment
from shoal.progress import Bars
from shoal.runs.sources.dataset import DatasetSource
from shoal.runs.train import train
from trainer.config import configured
from trainer.output.run_files import write_whole

TOPOLOGY = "demo"
# The global batch is large enough for the all-reduce to be a small part of a step. Word dropout is off, because every
# word of a generated text matters.
_TEXTS = 12_000
_GENERATED_LEARNING: Mapping[str, Any] = {"model": "lstm", "epochs": 10, "global_batch": 1024, "word_dropout": 0.0}
_LEARNING: Mapping[str, Any] = {"model": "lstm", "epochs": 12}
_MODEL, _MARK, _REVIEWS = "model", ".demo", "generated-reviews.json"
"""Names in the output folder: the run's folder, which each demo replaces; the file that marks a folder as created by a
demo; and the file of generated reviews."""
SLOWED = {1: 2.0}
"""Slowdown factor by rank. The second node emulates an older GPU, which the balancer must detect."""
_MARGIN = 0.05
"""Minimum by which the model's balanced accuracy must exceed 0.5, the value of a constant prediction."""
_SENTENCES = (
    "The screen is sharp. The battery is reliable. The strap is never flimsy.",
    "The screen is hardly sharp. The battery is faulty. The strap is flimsy.",
)


@dataclass(kw_only=True)
class DemoResult:
    created: dict[str, int] = field(default_factory=dict)
    """Number of resources by type, as the services list them."""
    left: dict[str, set[str]] = field(default_factory=dict)
    """Ids of the resources left after the destruction, by type."""
    asked: dict[str, int] = field(default_factory=dict)
    """Number of requests by user or role, all of them allowed."""
    counts: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    predictions: list[tuple[str, str, float]] = field(default_factory=list)
    dollars_an_hour: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    """Duration of each stage in seconds. The last stages overlap."""
    total_seconds: float = 0.0
    report: Path | None = None
    """File of the HTML report on the training and its data."""

    @property
    def created_total(self) -> int:
        return sum(self.created.values())

    @property
    def left_total(self) -> int:
        return sum(map(len, self.left.values()))


def run(
    inputs: Sequence[Path], output: Path, *, say: Callable[[str], None], before_proof: Callable[[], None] = lambda: None
) -> DemoResult:
    """Deploy, preprocess, train, predict, destroy and verify; write results and logs to `output`.

    `inputs`: review files (default: generated reviews). `before_proof` is called between the destruction and the
    verification. Raises ShoalError, or the error of a step, if a check fails.
    """
    result, started = DemoResult(), time.monotonic()
    own = Inputs(files=tuple(map(str, inputs))) if inputs else None
    files = [Path(each.address) for each in find_files(own)[0]] if own else []
    log = output / "cdk.log"
    _require_own(output / _MODEL)
    output.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder("shoal-demo-"))
        log.unlink(missing_ok=True)

        def announce(name: str) -> Any:
            return _announced(name, result.seconds, say)

        try:
            with announce("start the AWS emulator"):
                aws = stack.enter_context(EmbeddedAws(folder / "aws", wheels=cdk.WHEELS))
                stack.enter_context(_environment(aws.environment))

            def cdk_run(*arguments: str) -> None:
                cdk.run(arguments, environment={}, assembly=folder / "assembly", log=log)

            with announce("cdk bootstrap"):
                account = Account()
                policies.provide(account, POLICIES)
                allowed = policies.execution(account)
                cdk.prepare(account=ACCOUNT, region=REGION, execution=allowed, environment=aws.environment, log=log)
                raise_quotas()
                before = inventory()
            stack.enter_context(_environment(_create_user(account)))
            with announce(f"cdk deploy -c topology={TOPOLOGY}"):
                limits = f"permissions_boundary={policies.arn(account, BOUNDARY)}"
                cdk_run("deploy", "-c", f"topology={TOPOLOGY}", "-c", limits, "--require-approval", "never")
                result.created = {kind: len(found) for kind, found in left_over(before, inventory()).items()}
            _preprocess_and_train(result, files, output, announce)
            with ThreadPoolExecutor(1) as pool:
                used = pool.submit(_predict_and_report, result, output, announce)
                with announce(f"cdk destroy -c topology={TOPOLOGY}"):
                    cdk_run("destroy", "-c", f"topology={TOPOLOGY}", "--force")
            used.result()
            before_proof()
            with announce("verify that nothing is left"):
                result.left = left_over(before, inventory())
            result.asked = _asked(folder / "aws")
        finally:
            if (folder / "aws" / "emulator.log").exists():
                shutil.copy(folder / "aws" / "emulator.log", output)
                shutil.copy(folder / "aws" / record.FILE, output)
    result.total_seconds = time.monotonic() - started
    _check(result, generated=not files)
    return result


def _create_user(account: Account) -> dict[str, str]:
    """Create a user with only the permissions of the policy ShoalUser; return its credentials as variables."""
    iam, name = account.client("iam"), "demo"
    iam.create_user(UserName=name)
    iam.attach_user_policy(UserName=name, PolicyArn=policies.arn(account, USER))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}


def _require_own(model: Path) -> None:
    """Raise ShoalError if the run's folder `model` exists and was not created by an earlier demo."""
    if os.path.lexists(model) and not (model / _MARK).exists():
        raise ShoalError(
            f"the demo would replace {model}, which is not from an earlier demo; choose another --output, or "
            f"remove that folder"
        )


def _preprocess_and_train(result: DemoResult, files: list[Path], output: Path, announce: Callable[[str], Any]) -> None:
    written: WrittenReviews | None = None
    if not files:
        with announce("write reviews"):
            files = [output / _REVIEWS]
            written = write_reviews(files[0], texts=_TEXTS)
    deployment = find_deployment(TOPOLOGY)
    result.dollars_an_hour = cost.hourly(topology.load(TOPOLOGY, cdk.TOPOLOGIES))
    with announce(f"shoal preprocess --deployment {TOPOLOGY}"), Bars():
        merged = preprocess_on_deployment(
            deployment,
            Inputs(files=tuple(map(str, files))),
            settings=DEFAULT,
            max_malformed=DEFAULT_MAX_MALFORMED,
        )
        result.counts = merged.counts
        if written:
            _check_counts(written, merged.counts)
    learning = _GENERATED_LEARNING if written else _LEARNING
    options = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in learning.items())
    slow = " ".join(f"{rank}:{slowed}" for rank, slowed in SLOWED.items())
    with announce(f"shoal train --deployment {TOPOLOGY} {options} --slow {slow}"), Bars(unit="row"):
        config = configured({"data": Path("dataset"), "output": output / _MODEL, "slow": SLOWED, **learning})
        shutil.rmtree(config.output, ignore_errors=True)
        config.output.mkdir()
        (config.output / _MARK).touch()
        result.summary = train(DatasetSource(merged.dataset), config, NodesBackend(deployment))


def _predict_and_report(result: DemoResult, output: Path, announce: Callable[[str], Any]) -> None:
    with announce("shoal predict"):
        from trainer.classification.labelling import Labeller
        from trainer.classification.model_folder import load_model

        predictions = Labeller(load_model(output / _MODEL))(_SENTENCES)
        result.predictions = [
            (text, "positive" if each.label else "negative", each.probability)
            for text, each in zip(_SENTENCES, predictions, strict=True)
        ]
    with announce("shoal report"):
        result.report = output / "report.html"
        runs, _ = read_runs([output / _MODEL])
        groups = group_runs(runs)
        page = make_page(groups, make_rows(groups), warnings(runs), now=time.time())
        write_whole(result.report, page.encode())


@contextmanager
def _announced(name: str, seconds: dict[str, float], say: Callable[[str], None]) -> Iterator[None]:
    say(f"{name} ...")
    start = time.monotonic()
    yield
    seconds[name] = time.monotonic() - start
    say(f"{name}: {seconds[name]:.1f} s")


@contextmanager
def _environment(added: Mapping[str, str]) -> Iterator[None]:
    """Add variables to this process's environment, so that its AWS clients use only the emulator."""
    before = dict(os.environ)
    os.environ.update(added)
    boto3.DEFAULT_SESSION = None
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        boto3.DEFAULT_SESSION = None


def _check_counts(written: WrittenReviews, counts: Mapping[str, Any]) -> None:
    """Raise ShoalError unless preprocessing counted the reviews that the generator wrote."""
    for name, expected in vars(written).items():
        if counts[name] != expected:
            raise ShoalError(f"preprocessing counted {counts[name]} {name}, but the demo wrote {expected}")


def _asked(folder: Path) -> dict[str, int]:
    """Return the number of requests by user or role. Raises ShoalError if a request was denied."""
    checks = list(record.read_checks(folder))
    for check in checks:
        if check.decision != record.ALLOWED:
            raise ShoalError(f"{check.action} on {check.resource} by {check.who} was {check.decision}")
    return dict(Counter(check.who for check in checks))


def _check(result: DemoResult, *, generated: bool) -> None:
    """Raise ShoalError unless the result is as expected. Accuracy is checked only for generated reviews."""
    if not result.created_total:
        raise ShoalError("the deployment created nothing")
    if result.left:
        listed = "; ".join(f"{kind}: {', '.join(sorted(found))}" for kind, found in sorted(result.left.items()))
        raise ShoalError(
            f"{plural(result.left_total, 'resource')} {'is' if result.left_total == 1 else 'are'} left after "
            f"`cdk destroy`: {listed}"
        )
    summary = result.summary
    ranks = len(summary["nodes"])
    if summary["world_size"] != ranks or summary["rows_of_ranks"][0] <= summary["rows_of_ranks"][1]:
        raise ShoalError(
            f"{ranks} nodes got {summary['rows_of_ranks']} rows, but the first node is twice as fast as the second node"
        )
    if summary["rows_seen"] != summary["rows"] * summary["epochs"]:
        raise ShoalError(
            f"the training used {summary['rows_seen']} rows, but {summary['rows']} rows in each of "
            f"{summary['epochs']} epochs are expected"
        )
    if generated and summary["accuracy"] <= summary["majority"]:
        raise ShoalError(
            f"the model's accuracy is {summary['accuracy']:.1%}; it must be above {summary['majority']:.1%}, the share "
            "of the majority class"
        )
    if summary["balanced_accuracy"] <= 0.5 + _MARGIN:
        raise ShoalError(
            f"the model has learned nothing: its balanced accuracy is {summary['balanced_accuracy']:.1%}; a constant "
            "prediction has 50%"
        )
