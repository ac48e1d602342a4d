"""Source of training data: raw texts, from which a dataset is created once and then reused.

The name of the dataset is a fingerprint of the files, the settings and the code. On this machine the dataset is written
to the cache. If the texts are in S3, the nodes of a deployment create the dataset.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common.errors import DataError, ShoalError, explain_os_error
from common.private_folders import temporary_folder
from common.progress import reporter
from corpus.dataset import open_dataset
from corpus.dataset_settings import DEFAULT, Settings
from corpus.layout import DATASET_NAME
from corpus.raw_texts import RawTexts, describe_skipped_lines
from corpus.reading.acceptance import label_notes
from corpus.reading.inputs.inspection import inspect_inputs
from corpus.reading.s3 import is_s3
from corpus.reading.sources import Inputs
from corpus.reading.storage import identity_of
from jobs.preparation import fingerprint
from shoal.runs.sources.dataset import PreparedDataset
from shoal.runs.sources.source import DataAccess, DataSource, Prepared, Staging
from trainer.classification.mapped import default_cache
from trainer.config import TrainConfig


@dataclass(frozen=True, kw_only=True)
class TextsSource(DataSource):
    """Raw texts to train on, as the user named them."""

    inputs: Inputs
    settings: Settings
    """Rules that turn ratings into labels, and the share of test rows."""
    max_malformed: float

    def prepare(self, access: DataAccess, config: TrainConfig) -> Prepared:
        """Create the dataset on this machine, unless nodes read the texts from S3.

        If a node also runs the preprocessing jobs, these jobs create the dataset, without duplicate texts.
        """
        addresses = self.inputs.addresses
        if access.preprocesses:
            request = understand_texts(self, config.output, duplicates=False)
            copies = access.upload_inputs(request.sources, dataset_name(request))
            sources = tuple(replace(each, identity=identity_of(each.address)) for each in copies)
            return PreparedTexts(replace(request, sources=sources), addresses)
        local = [address for address in addresses if not is_s3(address)]
        if not access.reads_only_s3 or len(local) == len(addresses):
            path = dataset_of_texts(self, output=config.output, cache=config.cache)
            return PreparedDataset(access.dataset(str(path)), addresses if access.reads_only_s3 else ())
        if local:
            raise ShoalError(
                f"{local[0]} is on this machine, but other input is in S3; copy all input to S3, or all to this machine"
            )
        for address in addresses:
            access.require_readable(address)
        return PreparedTexts(understand_texts(self, config.output), addresses)


class PreparedTexts(Prepared):
    """Raw texts that nodes read, and from which they create a dataset."""

    label = "the dataset of the texts"

    def __init__(self, request: RawTexts, inputs: tuple[str, ...]) -> None:
        self._request, self.inputs = request, inputs
        does = "read" if request.settings.duplicates else "read and preprocess"
        self.staging = Staging(f"{does} the texts on the nodes", request.plain_bytes, "B")

    def request(self) -> Mapping[str, Any]:
        return {"texts": self._request, "texts_name": dataset_name(self._request)}


def understand_texts(texts: TextsSource, output: Path, *, duplicates: bool = True) -> RawTexts:
    """Determine the formats of the files, and return a request to read the files.

    Files in `output` are ignored, because they are results of a run. Raises DataError if the input is invalid.
    """
    inspection = inspect_inputs(texts.inputs, leave_out=str(output))
    for warning in inspection.warnings:
        reporter().note(warning)
    wanted = replace(settings_of_texts(texts.settings), duplicates=duplicates)
    settings = inspection.settings(wanted)
    inspection.check_values(settings, texts.max_malformed)
    return RawTexts(
        sources=inspection.sources,
        settings=settings,
        max_malformed=texts.max_malformed,
        plain_bytes=round(inspection.plain_bytes),
    )


def dataset_name(request: RawTexts) -> str:
    """Return the name of the dataset of these texts: 12 hexadecimal digits."""
    return fingerprint(request.sources, request.settings, frozenset())


def dataset_of_texts(texts: TextsSource, *, output: Path, cache: Path | None) -> Path:
    """Return the path of the dataset of these texts. Create the dataset in the cache if it is missing.

    Each row of the dataset is a whole text. The default of `cache` is the user's cache folder. Files in `output` are
    ignored, because they are results of a run. Raises DataError if the input is invalid.
    """
    from jobs.training import make_training_dataset  # imports numba, which takes seconds to load

    request = understand_texts(texts, output)
    home = cache or default_cache()
    path = home / f"texts-{dataset_name(request)}" / DATASET_NAME
    if not _is_dataset(path):
        with explain_os_error(DataError, f"cannot write to {home}", "choose another --cache"):
            home.mkdir(parents=True, exist_ok=True)
            with temporary_folder(".texts-", home) as folder:
                counts = make_training_dataset(request, folder, option="--cache").counts
                path.parent.mkdir(exist_ok=True)
                (folder / DATASET_NAME).replace(path)
        for sentence in describe_skipped_lines(**{name: counts[name] for name in ("lines", "malformed", "empty")}):
            reporter().note(f"{sentence}; shoal dataset info {shlex.quote(str(path))}")
        for sentence in label_notes(counts.get("other_labels", {}), request.settings):
            reporter().note(sentence)
    return path


def settings_of_texts(settings: Settings) -> Settings:
    """Return the settings of a dataset of whole texts.

    The rules for ratings and the share of test rows are those of `settings`.
    """
    of_input = ("rating_steps", "rating_range", "rating_fraction", "positive_from", "test_share")
    known = {name: getattr(settings, name) for name in of_input}
    return replace(DEFAULT, duplicates=True, **known)


def _is_dataset(path: Path) -> bool:
    try:
        with open_dataset(path):
            return True
    except DataError:
        return False
