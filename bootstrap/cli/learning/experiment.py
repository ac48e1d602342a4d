"""`shoal experiment run`: executes all runs of an experiment, alternating between arms, and shows the results."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bootstrap.cli.command import command, group, option
from bootstrap.cli.input_options import require_s3
from bootstrap.cli.output import Part, Result, Table, say, table
from bootstrap.cli.output_folder import sole_writer
from bootstrap.cli.target import check_name, connect_account
from bootstrap.interrupt import status_of
from bootstrap.progress import Bars
from common.display import join_lines, plural
from common.errors import ExperimentError, ShoalError, UsageError

if TYPE_CHECKING:
    from bootstrap.experiments.places import Deployments
    from bootstrap.experiments.running import RunMaker, RunningPlan
    from experiments.plans.experiment_files import ExperimentFile
    from experiments.plans.parts import PlannedRun
    from experiments.plans.prices import RunPrice
    from experiments.results import ArmResult, ExperimentResult

_WHERE, _DATA = "Where", "Data"
_READ = {
    "preprocessing": "preprocessing; give --input FILE... with raw reviews",
    "words": "word embeddings; give --input FILE... with text",
}
"""For each kind of experiment that requires --input: what it compares, and which option to give."""


@group(
    help="Run experiments: repeat training or preprocessing with different settings, and compare the results.",
    epilog="Example: shoal experiment run strong-scaling --local --data results/data/dataset.h5",
)
def run() -> None:
    """Group of the commands about experiments."""


@command(
    name="run",
    short_help="execute all runs of an experiment",
    help="Execute all runs of an experiment, alternating between its arms. Each run has its own folder. To "
    "continue after a stop, run the same command again; it does not repeat finished runs. Ctrl-C stops with a "
    "checkpoint and exit status 130. --dry-run shows the expected time and cost of the runs. Without --local "
    "and --deployment, --dry-run uses the prices of the arms' topologies.",
    epilog="""\
\b
Examples:
  shoal experiment run strong-scaling --local --data results/data/dataset.h5
  shoal experiment run mixed-gpus --dry-run --data results/data/dataset.h5
  shoal experiment run my-own.yaml --deployment one two --max-price 30
  shoal experiment run preprocessing --local --input reviews/*.json.gz
  shoal experiment run embeddings-50 --local --input books.txt.gz \\
      --similarity EN-WS-353-ALL.txt
""",
)
@click.argument("file", metavar="NAME_OR_FILE", help="one of Shoal's experiments by name, or your own YAML file")
@option("--local", is_flag=True, group=_WHERE, help="run on this machine")
@option(
    "--deployment",
    "deployments",
    several=True,
    group=_WHERE,
    metavar="NAME",
    help="run on these deployments; each arm uses the deployment of its topology",
)
@option(
    "--region",
    metavar="REGION",
    group=_WHERE,
    help="AWS region of the deployments (default: the region of your AWS configuration)",
)
@option(
    "--data",
    type=click.Path(),
    metavar="DATASET",
    group=_DATA,
    help="for training: a dataset made by `shoal preprocess`, which is a file or, with --deployment, can be "
    "s3://... (default with --deployment: the deployment's newest dataset)",
)
@option(
    "--input",
    "inputs",
    several=True,
    type=click.Path(),
    metavar="FILE_OR_S3",
    group=_DATA,
    help="for preprocessing: raw reviews; for word embeddings: text",
)
@option(
    "--similarity",
    several=True,
    type=click.Path(),
    metavar="FILE",
    group=_DATA,
    help="for word embeddings: files of word pairs with human similarity scores, to evaluate on",
)
@option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="folder for the runs (default: results/experiments/NAME)",
)
@option("--arms", several=True, metavar="ARM", help="names of the arms to run (default: all)")
@option(
    "--max-price",
    type=click.FloatRange(min=0),
    metavar="DOLLARS",
    help="start no run if the expected cost of all runs together exceeds DOLLARS (default: max_price in the "
    "experiment's file)",
)
@option("--dry-run", is_flag=True, help="show the planned runs with their expected time and cost; start no run")
def run_file(file: str, arms: tuple[str, ...], dry_run: bool, **asked: Any) -> Result:
    from bootstrap.experiments.running import plan_runs
    from experiments.plans.experiment_files import load
    from experiments.plans.prices import require_price
    from experiments.results import read_experiment

    experiment_file = load(file)
    _require_options(experiment_file, asked, dry_run=dry_run)
    require_s3(asked["data"], *asked["inputs"], *asked["similarity"])
    output = asked["output"] or Path("results/experiments") / experiment_file.name
    plan = plan_runs(experiment_file, _maker(experiment_file, asked, output), output=output, names=arms)
    prices = plan.prices()
    limit = asked["max_price"] if asked["max_price"] is not None else experiment_file.experiment.max_price
    try:
        require_price([price for _, price in prices], None if asked["local"] else limit)
    except ExperimentError as error:
        if not dry_run:
            raise
        return replace(planned_result(plan, prices), failures=[str(error)], status=1)
    if dry_run:
        return planned_result(plan, prices)
    stopped_by = _run(plan)
    return replace(found_result(read_experiment(output)), status=status_of(stopped_by) if stopped_by else 0)


run.add_command(run_file)


def _run(plan: "RunningPlan") -> str | None:
    """Execute the runs; return the signal that stopped them, or None. After a stop, print how to continue."""
    from bootstrap.experiments.running import run_experiment

    try:
        with (
            sole_writer(plan.output),
            Bars(unit="B" if plan.file.experiment.kind == "preprocessing" else "row") as bars,
        ):
            stopped_by = run_experiment(plan, bars)
    except KeyboardInterrupt:
        say("to continue, run the same command again")
        raise
    if stopped_by:
        say("stopped with a checkpoint; to continue, run the same command again")
    return stopped_by


def _require_options(experiment_file: "ExperimentFile", asked: dict[str, Any], *, dry_run: bool) -> None:
    """Raise UsageError for contradictory options."""
    local, deployments = asked["local"], asked["deployments"]
    if (local and deployments) or not (local or deployments or dry_run):
        raise UsageError("choose where to run: shoal experiment run with either --local or --deployment NAME...")
    if asked["region"] is not None and not deployments:
        raise UsageError("--region requires --deployment")
    kind = experiment_file.experiment.kind
    if kind in _READ:
        if asked["data"] is not None or not asked["inputs"]:
            raise UsageError(f"'{experiment_file.name}' compares {_READ[kind]}, instead of --data")
    elif asked["inputs"] or (asked["data"] is None and not deployments):
        raise UsageError(
            f"'{experiment_file.name}' compares training runs; give --data with a dataset made by `shoal preprocess`, "
            f"instead of --input"
        )
    if kind != "words" and asked["similarity"]:
        raise UsageError(
            f"--similarity requires an experiment on word embeddings, which '{experiment_file.name}' is not"
        )


def _maker(experiment_file: "ExperimentFile", asked: dict[str, Any], output: Path) -> "RunMaker":
    """Return the object that executes runs of the experiment's kind."""
    from bootstrap.experiments import preprocessings, trainings
    from bootstrap.experiments.places import LocalMachine
    from bootstrap.training.sources.dataset import DatasetSource

    inputs = asked["inputs"]
    where = LocalMachine() if asked["local"] else _deployments(experiment_file, asked)
    if experiment_file.experiment.kind == "preprocessing":
        return preprocessings.Preprocessings(where, inputs, output)
    if experiment_file.experiment.kind == "words":
        source = trainings.text_of(experiment_file.experiment, inputs, output)
        return trainings.Trainings(experiment_file.experiment, where, source, similarity=asked["similarity"])
    return trainings.Trainings(experiment_file.experiment, where, DatasetSource(asked["data"]))


def _deployments(experiment_file: "ExperimentFile", asked: dict[str, Any]) -> "Deployments":
    """Return the named deployments. Without names, return the arms' topologies, which suffice to price a dry run."""
    from bootstrap.aws import cdk
    from bootstrap.aws.deployment import Deployment, find_deployment
    from bootstrap.experiments.places import Deployments
    from infra import topology
    from infra.topology import Topology

    names: Sequence[str] = asked["deployments"]
    wanted = {topology.name_of(arm.topology): arm.topology for arm in experiment_file.experiment.arms if arm.topology}
    if not names:
        return Deployments({name: (topology.load(given, cdk.TOPOLOGIES), None) for name, given in wanted.items()})
    account = connect_account(asked["region"])
    by_topology: dict[str, tuple[Topology, Deployment | None]] = {}
    for name in names:
        deployment = find_deployment(check_name(name), account)
        made_from = deployment.topology
        if made_from not in wanted:
            raise ShoalError(
                f"the deployment '{name}' has the topology {made_from}, which no arm of '{experiment_file.name}' uses"
            )
        if made_from in by_topology:
            raise ShoalError(f"two of the deployments have the topology {made_from}; give only one of them")
        by_topology[made_from] = (topology.load(wanted[made_from], cdk.TOPOLOGIES), deployment)
    return Deployments(by_topology)


def _estimate(name: str, run: Mapping[str, Any]) -> str:
    from experiments.estimate import Estimate

    estimate = Estimate(**run[name]) if run[name] else None
    return "-" if estimate is None else estimate.time() if name == "seconds" else estimate.dollars()


_RUNS = Table(
    "runs",
    {
        "arm": "{arm}",
        "repeat": "{repeat}",
        "time": lambda run: _estimate("seconds", run),
        "cost": lambda run: _estimate("dollars", run),
        "based on": "{basis}",
    },
)


def planned_result(plan: "RunningPlan", prices: Sequence[tuple["PlannedRun", "RunPrice"]]) -> Result:
    """Return the planned runs with their expected time and cost."""
    from experiments.plans.prices import total_dollars

    dollars, done = total_dollars([price for _, price in prices]), len(plan.runs) - len(prices)
    content = {
        "experiment": plan.file.name,
        "output": str(plan.output),
        "runs": [
            {
                "arm": run.arm.name,
                "repeat": run.repeat,
                "folder": str(run.folder),
                "seconds": price.seconds and asdict(price.seconds),
                "dollars": price.dollars and asdict(price.dollars),
                "basis": price.basis,
            }
            for run, price in prices
        ],
        "dollars": asdict(dollars),
        "finished": done,
        "left_out": {arm.name: why for arm, why in plan.left_out},
    }
    unknown = sum(price.dollars is None for _, price in prices)
    and_more = f", and {plural(unknown, 'run')} of unknown price" if unknown else ""
    totals = [
        f"Total: {dollars.dollars()}{and_more}. Folder of the runs: {plan.output}",
        *([f"{done} of {plural(len(plan.runs), 'run')} already finished."] if done else []),
        *(f"Left out: '{arm.name}', because {why}." for arm, why in plan.left_out),
    ]
    return Result(content, [f"{plan.file.name}: {plan.file.experiment.about}", _RUNS, join_lines(totals)])


def found_result(result: "ExperimentResult") -> Result:
    """Return the results of an experiment as tables with one row per arm. The report has the same tables."""
    from experiments.records.comparing import warnings
    from experiments.report.rows import about
    from experiments.report.sections import EXPERIMENT

    warned = [
        *warnings([run for arm in result.arms for run in arm.runs]),
        *(f"left out: {each}" for each in result.problems),
    ]
    of = result.kept.experiment
    content = {
        "experiment": result.kept.name,
        "about": of.about,
        "kind": of.kind,
        "output": str(result.folder),
        "baseline": list(of.baseline),
        "arms": [_arm(arm) for arm in result.arms],
        "warnings": warned,
    }
    parts: list[Part] = [f"{result.kept.name}: {about(result)}"]
    if not any(arm.finished for arm in result.arms):
        return Result(content, [*parts, "No run has finished."])
    for spec in EXPERIMENT:
        if section_table := spec.build(result):
            right = [place for place, is_number in enumerate(section_table.numbers()) if is_number]
            parts.append(
                table(section_table.cells(), [column.head for column in section_table.columns], right=right, ruled=True)
            )
    advice = f"A report of all runs: shoal report {shlex.quote(str(result.folder))}"
    return Result(content, [*parts, join_lines([*warned, advice])])


def _arm(arm: "ArmResult") -> dict[str, Any]:
    spreads = {"seconds": arm.seconds, "rate": arm.rate}
    left_out = {"runs", "problems", "is_mixed"}
    return {
        **{name: value for name, value in vars(arm).items() if name not in left_out},
        **{name: spread and spread._asdict() for name, spread in spreads.items()},
        "folder": str(arm.folder),
    }
