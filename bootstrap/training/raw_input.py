"""Raw texts for a training on this machine: their dataset is made once, and found again by the next command.

It lies in the folder of the cache, under a name that stands for the files as they are, the settings and the code.
"""

from dataclasses import replace
from pathlib import Path

from bootstrap.progress import Bars
from corpus.dataset import open_dataset
from corpus.display import plural
from corpus.errors import DataError
from corpus.reading.inputs.understanding import understand_inputs
from corpus.reading.sources import Inputs
from corpus.settings import Settings
from jobs.preparation import fingerprint
from trainer.classification.data import default_cache


def dataset_of_texts(
    inputs: Inputs,
    settings: Settings,
    *,
    max_malformed: float,
    allow_damaged: bool,
    output: Path,
    cache: Path | None,
    bars: Bars,
) -> Path:
    """The dataset of these texts, whole texts as rows; made in `cache`, or in the user's own, if it is not there.

    `settings` have what ratings mean, and the share for the test. Files in `output`, the folder of the training's
    results, are no input. Raises DataError for input that cannot be used.
    """
    from corpus.raw_texts import encode_texts  # numba takes long to load

    understanding = understand_inputs(inputs, leave_out=str(output))
    for warning in understanding.warnings:
        bars.note(warning)
    settings = understanding.settings(settings_of_texts(settings))
    understanding.check_values(settings, max_malformed)
    name = fingerprint(understanding.sources, settings, frozenset())
    path = (cache or default_cache()) / f"texts-{name}.h5"
    if not _is_dataset(path):
        bars.stage("read the texts", round(understanding.plain_bytes), "B")
        done = 0

        def report(size: int) -> None:
            nonlocal done
            done += size
            bars.at(done)

        counts = encode_texts(
            understanding.sources,
            settings,
            path,
            max_malformed=max_malformed,
            allow_damaged=allow_damaged,
            report=report,
        )
        if counts["malformed"]:
            lines = plural(counts["lines"], "line")
            bars.note(f"{counts['malformed']:,} of {lines} are malformed, and are left out; shoal dataset info {path}")
    return path


def settings_of_texts(settings: Settings) -> Settings:
    """The settings of such a dataset, with what ratings mean, and the share for the test, of `settings`."""
    from corpus.raw_texts import SETTINGS  # numba takes long to load

    of_input = ("rating_steps", "rating_range", "rating_fraction", "positive_from", "test_share")
    return replace(SETTINGS, **{name: getattr(settings, name) for name in of_input})


def _is_dataset(path: Path) -> bool:
    try:
        with open_dataset(path):
            return True
    except DataError:
        return False
