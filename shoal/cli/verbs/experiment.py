"""`shoal experiment`: executes the runs of an experiment, alternating between its arms, and shows their table.

Each run is a plain `shoal train` or `shoal embed` in a child process, so a run of an experiment is like any other run.
A child has a process group of its own, because a second Ctrl-C would abort its checkpoint: the signals of the terminal
reach only this command, which passes each of them on once.
"""

import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from common.display import join_lines, plural
from common.errors import DataError, ExperimentError, UsageError
from common.options import flag
from common.starter import ending_with_this_process
from infra.topology_error import TopologyError
from shoal.cli.command import Command, command, given_words, option, typed_options
from shoal.cli.output import Result, Rows, Table, say
from shoal.cli.output_folder import sole_writer
from shoal.cli.training_run import config_of
from shoal.cli.verbs import embed, train
from shoal.cli.verbs.report import report_result
from shoal.interrupt import Interrupt, status_of
from trainer.config import TrainConfig
from trainer.output.run_files import CHECKPOINT_PATTERN, CHECKPOINTS, RECORD, finished_summary, was_stopped

if TYPE_CHECKING:
    from experiments.estimate import Estimate
    from experiments.matrix import PlannedRun

_SOURCES = ("data", "input", "positive_input", "negative_input")
_DATA = "Data"


@command(
    help="Execute the runs of an experiment: each arm several times with different seeds, alternating between the "
    "arms. Each run is a `shoal train` or `shoal embed`, and has its own folder, DIR/ARM/REPEAT. To continue after a "
    "stop, run the same command again; it keeps finished runs. Ctrl-C stops with a checkpoint and exit status 130. At "
    "the end, the command prints the table of `shoal report`. OPTIONS after -- are added to each command.",
    epilog="""\
\b
Examples:
  shoal experiment models --input reviews.csv --output results/models
  shoal experiment mine.yaml --output results/mine --dry-run
  shoal experiment mine.yaml --output results/mine -- --max-dollars 5
""",
)
@click.argument("file", metavar="NAME_OR_FILE", help="one of Shoal's experiments by name, or your own YAML file")
@click.argument("options", nargs=-1, metavar="[-- OPTIONS]", help="further options of each command")
@option("--output", type=click.Path(path_type=Path), required=True, metavar="DIR", help="folder for the runs")
@option(
    "--data",
    type=click.Path(),
    group=_DATA,
    metavar="DATASET",
    help="dataset made by `shoal preprocess` (default: data of the file)",
)
@option(
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(),
    group=_DATA,
    metavar="FILE_OR_S3",
    help="texts to learn from (default: input of the file)",
)
@option("--arms", multiple=True, metavar="ARM", help="names of the arms to run (default: all)")
@option("--local", is_flag=True, help="run only the arms of this machine")
@option("--dry-run", is_flag=True, help="print the commands, and the predicted time and cost; start no run")
def run(*, file: str, options: tuple[str, ...], output: Path, dry_run: bool, **asked: Any) -> Result:
    from experiments.matrix import plan_runs, read_experiment

    experiment = read_experiment(file)
    names = list(asked["arms"])
    if asked["local"]:
        names = [arm.name for arm in experiment.arms if not arm.deployment and (not names or arm.name in names)]
        if not names:
            raise UsageError(f"--local leaves no arm of {file}, because its arms run on deployments")
    given = ["--data", asked["data"]] if asked["data"] else []
    given += ["--input", *asked["inputs"]] if asked["inputs"] else []
    runs = plan_runs(experiment, output, names=names, given=[*given, *options])
    checked = [_check(run, {**experiment.settings, **run.arm.settings}, file) for run in runs]
    if dry_run:
        return _planned(runs, checked)
    with sole_writer(output):
        status = _execute([run for run in runs if finished_summary(run.folder) is None], len(runs))
    recorded = [arm for arm in experiment.arms if any((output / arm.folder).glob(f"*/{RECORD}"))]
    if not recorded:
        return Result({"runs": [], "warnings": []}, ["No run has written a record."], status)
    done = [arm.name for arm in recorded if any(map(finished_summary, (output / arm.folder).iterdir()))]
    base = next((name for name in experiment.baseline if name in done), None)
    folders = {arm.name: output / arm.folder for arm in recorded}
    found = report_result([*folders.values()], baseline=folders[base] if base else None)
    page = ["shoal", "report", str(output), *(["--baseline", str(folders[base])] if base else [])]
    advice = f"A page: {shlex.join([*page, '--output', 'report.html'])}"
    return replace(found, parts=[experiment.about, *found.parts, advice], status=status)


def _check(run: "PlannedRun", settings: Mapping[str, Any], file: str) -> TrainConfig:
    """Return the configuration of a run, from its parsed command.

    Raises UsageError for an invalid option, and ExperimentError if the run's folder contains a run with other options.
    """
    from shoal.runs.train import repeating_options, stored_options  # this import loads boto3

    verb, *words = run.words
    parser: Command = {"train": train, "embed": embed}[verb].run
    arm = f"{file}, arm '{run.arm.name}'"
    try:
        ctx = parser.make_context(f"shoal {verb}", words)
        switches = {each.name for each in parser.params if isinstance(each, click.Option) and each.is_flag}
        for name, value in settings.items():
            if isinstance(value, bool) and name.replace("-", "_") not in switches:
                raise UsageError(f"{name} is a word that YAML reads as {str(value).lower()}; write it in quotes")
        typed = typed_options(ctx)
        if not run.arm.deployment and not any(typed.get(name) for name in _SOURCES):
            raise UsageError("it has no data; give --data with a dataset, or --input with texts")
        default = {"model": "skipgram"} if verb == "embed" and "preset" not in typed else {}
        config = config_of(ctx, default, endless=bool(typed.get("follow")))
    except click.UsageError as error:
        raise UsageError(f"{arm}: {error.format_message().rstrip('.')}") from None
    except UsageError as error:
        raise UsageError(f"{arm}: {error}") from None
    before, now = stored_options(run.folder), repeating_options(config, given_words(ctx))
    differing = [name for name in {**before, **now} if list(before.get(name, [None])) != list(now.get(name, [None]))]
    if before and differing:
        raise ExperimentError(
            f"{run.folder} contains a run with another {flag(differing[0])}; choose another --output, or remove that "
            "folder"
        )
    return config


def _execute(runs: Sequence["PlannedRun"], number: int) -> int:
    """Execute the unfinished runs, of `number` runs; return 0, or the exit status of a run that was stopped.

    Raises ExperimentError if a run fails. If the user repeats the command, it continues with the failed run.
    """
    done = number - len(runs)
    if done:
        say(f"{done} of {plural(number, 'run')} already finished")
    for place, run in enumerate(runs, done + 1):
        say(f"run {place} of {number}: {run.label}")
        has_checkpoint = any((run.folder / CHECKPOINTS).glob(CHECKPOINT_PATTERN))
        resumes = was_stopped(run.folder) or (has_checkpoint and not run.arm.deployment)
        status = _finish([*run.words, *(["--resume"] if resumes else [])])
        if status in (status_of("SIGINT"), status_of("SIGTERM")):
            say("stopped; to continue, run the same command again")
            return status
        if status:
            raise ExperimentError(
                f"{run.label}, failed with exit status {status}; its message is above. To continue with this run, run "
                "the same command again"
            )
    return 0


def _finish(words: Sequence[str]) -> int:
    """Run a command in a child process; return its exit status. Pass signals that end this process to the child."""
    line = ending_with_this_process(sys.executable, "-m", "shoal.cli.main", *words, "--json")
    with subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True) as child:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt as interrupt:
                child.send_signal(interrupt.number if isinstance(interrupt, Interrupt) else signal.SIGINT)


def _planned(runs: Sequence["PlannedRun"], configs: Sequence[TrainConfig]) -> Result:
    rows: list[dict[str, Any]] = []
    for run, config in zip(runs, configs, strict=True):
        if run.arm.deployment and run.repeat == 1:
            repeats = sum(each.arm is run.arm for each in runs)
            seconds, dollars, basis = _predicted(run, config)
            rows.append({"arm": run.arm.name, "runs": repeats, "seconds": seconds, "dollars": dollars, "basis": basis})
    commands = [shlex.join(["shoal", *run.words]) for run in runs]
    columns: Rows = {
        "arm": "{arm}",
        "runs": "{runs}",
        "time of a run": lambda row: row["seconds"].time() if row["seconds"] else "-",
        "cost of a run": lambda row: row["dollars"].dollars() if row["dollars"] else "-",
        "based on": "{basis}",
    }
    content = [{**row, **{name: row[name] and asdict(row[name]) for name in ("seconds", "dollars")}} for row in rows]
    return Result({"commands": commands, "predicted": content}, [join_lines(commands), Table(rows, columns)])


def _predicted(run: "PlannedRun", config: TrainConfig) -> "tuple[Estimate | None, Estimate | None, str]":
    """Return the predicted seconds and dollars of a run on a deployment, or None, and their source or the reason.

    The deployment must have the name of its topology, and the dataset must be on this machine.
    """
    from experiments.choices import predict
    from experiments.forecast import run_work
    from infra import topology
    from infra.gpu_nodes import nodes_of
    from shoal.aws import cdk
    from shoal.runs.sources.dataset import opened_dataset

    words = list(run.words)
    if "--data" not in words:
        return None, None, "cannot tell: the number of rows is unknown; give a dataset with --data"
    try:
        chosen = topology.load(str(run.arm.deployment), cdk.TOPOLOGIES)
        with opened_dataset(words[words.index("--data") + 1]) as dataset:
            work = run_work(config, dataset.size, ranks=sum(node.gpus for node in nodes_of(chosen)))
        found = predict(chosen, work)
    except (DataError, ExperimentError, TopologyError) as error:
        return None, None, f"cannot tell: {error}"
    if found.unknown:
        return found.seconds, None, f"these have no known price: {', '.join(found.unknown)}"
    return found.seconds, found.dollars, found.stages[-1].basis
