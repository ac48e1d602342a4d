"""What a report is about: runs, each with the name that it has in every plot, and the datasets that were given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from common.errors import DataError, ExperimentError
from corpus.dataset import open_dataset
from corpus.layout import COUNTS_NAME, DATASET_NAME, is_digest
from experiments.plans.kept import NAME as EXPERIMENT
from experiments.records.comparing import described, differing_settings
from experiments.records.finding import find_below, find_runs
from experiments.records.runs import RunRecord, read_all, read_run
from experiments.report.tables import shortened
from experiments.results import ExperimentResult, read_experiment
from trainer.output.run_files import RECORD

Count = Annotated[int, Field(ge=0, lt=2**53)]
_MOST_LETTERS = 36
MOST_LINES = 8
"""Names that plots with lines tell apart."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    run: RunRecord
    name: str
    """Its own."""
    group: str
    """That of the runs with the same settings but for the seed: they are drawn alike."""


@dataclass(frozen=True, kw_only=True)
class DataCounts:
    """What preprocessing counted of a dataset (counts.json)."""

    folder: Path
    digest: str | None
    """None where the dataset is not beside its counts."""
    classes: Sequence[str]
    """Their names by label; empty where they are not known."""
    counts: "Counts"

    @property
    def name(self) -> str:
        return self.folder.resolve().name


class _Change(BaseModel):
    """Numbers by a name, of all texts and of the distinct ones."""

    before: dict[str, Count]
    after: dict[str, Count]


class Counts(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    lines: Count
    malformed: Count
    empty: Count
    texts: Count
    distinct: Count
    train: Count
    test: Count
    tokens: Count
    unknown_tokens: Count
    ratings: _Change
    labels: _Change
    lengths: dict[Annotated[str, Field(pattern="^[0-9]{1,9}$")], Count]
    frequent_words: list[tuple[str, Count]]


@dataclass(frozen=True, kw_only=True)
class Found:
    subjects: Sequence[Subject]
    experiments: Sequence[ExperimentResult]
    data: Sequence[DataCounts]
    problems: Sequence[str]
    """Sentences on runs that cannot be read, and are left out."""


def find_subjects(folders: Sequence[Path]) -> Found:
    """The runs, experiments and datasets in these folders.

    Raises ExperimentError for a folder with none of them, and where nothing of a kind can be read.
    """
    for folder in folders:
        if not any(find_below([folder], name) for name in (EXPERIMENT, COUNTS_NAME)):
            find_runs([folder])
    planned = find_below(folders, EXPERIMENT)
    experiments, unread = read_all(read_experiment, planned)
    own = [each.resolve() for each in planned]  # datasets of an experiment's runs are no subjects
    counted = [each for each in find_below(folders, COUNTS_NAME) if not {*own} & {*each.resolve().parents}]
    data = [read_counts(folder) for folder in counted]
    known = {run.folder.resolve(): run for each in experiments for arm in each.arms for run in arm.runs}
    others = [each for each in find_below(folders, RECORD) if each.resolve() not in known]
    more, problems = read_all(read_run, others)
    problems = [*unread, *problems]
    runs = [*known.values(), *more]
    if problems and not (runs or experiments or data):
        raise ExperimentError(problems[0])
    problems += [each for found in experiments for each in found.problems if each not in problems]
    return Found(subjects=_named(runs, _arms(experiments)), experiments=experiments, data=data, problems=problems)


def _arms(experiments: Sequence[ExperimentResult]) -> dict[Path, str]:
    """The name of the arm by the folder of a run; the experiment's folder before it, where there are several."""
    names = _short_names([each.folder.resolve() for each in experiments])
    return {
        run.folder.resolve(): arm.name if len(experiments) == 1 else f"{name}, {arm.name}"
        for name, each in zip(names, experiments, strict=True)
        for arm in each.arms
        for run in arm.runs
    }


def read_counts(folder: Path) -> DataCounts:
    """What preprocessing counted of the dataset in this folder. Raises ExperimentError."""
    path = folder / COUNTS_NAME
    try:
        counts = Counts.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ExperimentError(f"cannot read {path}: {error.strerror}; make the dataset again") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "its JSON"
        raise ExperimentError(
            f"{path} is not what `shoal preprocess` counts: {place}: {first['msg']}; make the dataset again"
        ) from error
    try:
        with open_dataset(folder / DATASET_NAME) as dataset:
            return DataCounts(
                folder=folder,
                digest=dataset.digest,
                classes=dataset.settings.classes or ("negative", "positive"),
                counts=counts,
            )
    except DataError:  # it is not there: on S3 a dataset's folder has its digest for a name
        name = folder.resolve().name
        return DataCounts(folder=folder, digest=name if is_digest(name) else None, classes=(), counts=counts)


def _named(runs: Sequence[RunRecord], arms: Mapping[Path, str]) -> list[Subject]:
    """The runs with their names: their folders', as short as tells them apart. Their group has the name of its
    settings, of its first run where these are many, or of the arm of an experiment, by the folders of its runs."""
    names = _short_names([run.folder.resolve() for run in runs])
    differing = differing_settings(runs)
    settings = [described({name: each[name] for name in each if name != "seed"}) for each in differing]
    repeated = len(set(settings)) < len(runs) and len(set(settings)) > 1
    first = dict(reversed([*zip(settings, names, strict=True)]))
    own = [group if 0 < len(group) <= _MOST_LETTERS else first[group] for group in settings] if repeated else names
    groups = _elided([arms.get(run.folder.resolve(), group) for run, group in zip(runs, own, strict=True)])
    return [
        Subject(run=run, name=name, group=group) for run, name, group in zip(runs, _elided(names), groups, strict=True)
    ]


def groups(subjects: Sequence[Subject]) -> dict[str, list[Subject]]:
    found: dict[str, list[Subject]] = {}
    for subject in subjects:
        found.setdefault(subject.group, []).append(subject)
    return found


def _elided(names: Sequence[str]) -> list[str]:
    """The names without the middle of those that are too long for a plot; different names stay different."""
    found: dict[str, str] = {}
    for name in names:
        short = shortened(name, _MOST_LETTERS)
        if name not in found:
            found[name] = short if short not in found.values() else f"{short} ({len(found) + 1})"
    return [found[name] for name in names]


def _short_names(folders: Sequence[Path]) -> list[str]:
    """The ends of paths, of as many parts as tell them apart."""
    deepest = max((len(folder.parts) for folder in folders), default=1)
    for parts in range(1, deepest + 1):
        names = [str(Path(*folder.parts[-parts:])) for folder in folders]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]
