"""Finds the subjects of a report: experiments, datasets and runs. A run has the same name in all plots."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from common.errors import DataError, ExperimentError
from common.files import DOCUMENT_BYTES, read_regular
from corpus.dataset import open_dataset
from corpus.layout import COUNTS_NAME, DATASET_NAME, is_digest
from experiments.plans.stored import NAME as EXPERIMENT
from experiments.records.comparing import differing_settings, settings_text
from experiments.records.finding import find_below, find_runs
from experiments.records.runs import RunRecord, read_all, read_run
from experiments.report.tables import shortened
from experiments.results import ExperimentResult, read_experiment
from trainer.output.run_files import RECORD

Count = Annotated[int, Field(ge=0, lt=2**53)]
_MAX_CHARACTERS = 36
MAX_LINES = 8
"""Maximum number of names in a plot with lines."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    run: RunRecord
    name: str
    """Unique name of the run."""
    group: str
    """Name of a group of runs that differ only in their seed. The runs of a group are drawn in the same colour."""


@dataclass(frozen=True, kw_only=True)
class DataCounts:
    """Counts that preprocessing stored with a dataset (counts.json)."""

    folder: Path
    digest: str | None
    """Digest of the dataset, or None if the dataset is not in the same folder."""
    classes: Sequence[str]
    """Names of the classes, indexed by label. Empty if unknown."""
    counts: "Counts"

    @property
    def name(self) -> str:
        return self.folder.resolve().name


class _Change(BaseModel):
    """Numbers by name, before and after the removal of duplicate texts."""

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
class ReportContent:
    subjects: Sequence[Subject]
    experiments: Sequence[ExperimentResult]
    data: Sequence[DataCounts]
    problems: Sequence[str]
    """Messages about unreadable runs, which are left out."""


def find_subjects(folders: Sequence[Path]) -> ReportContent:
    """Find the runs, experiments and datasets in these folders.

    Raises ExperimentError if a folder has no run, experiment or dataset, or if nothing is readable.
    """
    for folder in folders:
        if not any(find_below([folder], name) for name in (EXPERIMENT, COUNTS_NAME)):
            find_runs([folder])
    planned = find_below(folders, EXPERIMENT)
    experiments, unread = read_all(read_experiment, planned)
    own = [each.resolve() for each in planned]  # leave out the datasets of an experiment's runs
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
    return ReportContent(
        subjects=_subjects(runs, _arms(experiments)), experiments=experiments, data=data, problems=problems
    )


def _arms(experiments: Sequence[ExperimentResult]) -> dict[Path, str]:
    """Return the name of the arm for the folder of each run. If there are several experiments, the name starts with the
    experiment's folder."""
    names = _short_names([each.folder.resolve() for each in experiments])
    return {
        run.folder.resolve(): arm.name if len(experiments) == 1 else f"{name}, {arm.name}"
        for name, each in zip(names, experiments, strict=True)
        for arm in each.arms
        for run in arm.runs
    }


def read_counts(folder: Path) -> DataCounts:
    """Return the counts of the dataset in this folder. Raises ExperimentError if they are missing or invalid."""
    path = folder / COUNTS_NAME
    try:
        counts = Counts.model_validate_json(read_regular(path, DOCUMENT_BYTES))
    except OSError as error:
        raise ExperimentError(f"cannot read {path}: {error.strerror}; create the dataset again") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "its JSON"
        raise ExperimentError(
            f"{path} does not have the counts of `shoal preprocess` ({place}: {first['msg']}); create the dataset again"
        ) from error
    try:
        with open_dataset(folder / DATASET_NAME) as dataset:
            return DataCounts(
                folder=folder,
                digest=dataset.digest,
                classes=dataset.settings.classes or ("negative", "positive"),
                counts=counts,
            )
    except DataError:  # without a dataset file, use the folder's name, which on S3 is the digest
        name = folder.resolve().name
        return DataCounts(folder=folder, digest=name if is_digest(name) else None, classes=(), counts=counts)


def _subjects(runs: Sequence[RunRecord], arms: Mapping[Path, str]) -> list[Subject]:
    """Return the runs with unique names and the names of their groups.

    The name of a run is the shortest unique ending of its path. The name of a group is the arm of an experiment.
    Without an experiment, it is the settings of the group, or the name of its first run if there are too many settings.
    """
    names = _short_names([run.folder.resolve() for run in runs])
    differing = differing_settings(runs)
    settings = [settings_text({name: each[name] for name in each if name != "seed"}) for each in differing]
    repeated = len(set(settings)) < len(runs) and len(set(settings)) > 1
    first = dict(reversed([*zip(settings, names, strict=True)]))
    own = [group if 0 < len(group) <= _MAX_CHARACTERS else first[group] for group in settings] if repeated else names
    groups = _shorten_all([arms.get(run.folder.resolve(), group) for run, group in zip(runs, own, strict=True)])
    return [
        Subject(run=run, name=name, group=group)
        for run, name, group in zip(runs, _shorten_all(names), groups, strict=True)
    ]


def groups(subjects: Sequence[Subject]) -> dict[str, list[Subject]]:
    found: dict[str, list[Subject]] = {}
    for subject in subjects:
        found.setdefault(subject.group, []).append(subject)
    return found


def _shorten_all(names: Sequence[str]) -> list[str]:
    """Remove the middle of names that are too long for a plot. Different names remain different."""
    found: dict[str, str] = {}
    for name in names:
        short = shortened(name, _MAX_CHARACTERS)
        if name not in found:
            found[name] = short if short not in found.values() else f"{short} ({len(found) + 1})"
    return [found[name] for name in names]


def _short_names(folders: Sequence[Path]) -> list[str]:
    """Return, for each path, the shortest ending that no other path shares."""
    deepest = max((len(folder.parts) for folder in folders), default=1)
    for parts in range(1, deepest + 1):
        names = [str(Path(*folder.parts[-parts:])) for folder in folders]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]
