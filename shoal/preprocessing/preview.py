"""Preview of preprocessing on this machine: the detected format, the estimated duration, and the output files."""

from dataclasses import dataclass

from common.cores import cores
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.acceptance import check_input, label_notes
from corpus.reading.inputs.inspection import InputInspection, inspect_inputs
from corpus.reading.s3 import is_s3
from corpus.reading.sources import Inputs
from corpus.reading.storage import join
from corpus.reading.tally import other_labels
from jobs.preparation import Estimate, estimate_work
from shoal.preprocessing.dataset_warnings import threshold_warnings, too_few_warnings

_RESULTS = ("dataset.h5", "counts.json")


@dataclass(frozen=True, kw_only=True)
class PreprocessingPreview:
    inspection: InputInspection
    settings: Settings
    """Settings, including settings that were derived from the input."""
    estimated: Estimate
    output: tuple[str, ...]
    """Addresses of the files that would be written."""

    @property
    def warnings(self) -> list[str]:
        """Warnings for the user. Row counts are an upper bound, because they include duplicate texts."""
        rows = self.inspection.rows
        test = round(rows * self.settings.test_share)
        return [
            *self.inspection.warnings,
            *self.inspection.sample.tally.damage_reports(),
            *label_notes(other_labels(self.inspection.sample.tally.counts), self.settings),
            *([] if self.settings.labelled else threshold_warnings(self.settings)),
            *([] if self.settings.test_input else too_few_warnings(rows - test, test, self.settings)),
        ]


def preview_local(inputs: Inputs, settings: Settings, *, output: str | None) -> PreprocessingPreview:
    """Return a preview of preprocessing on this machine.

    Raises DataError if the input is unreadable or ambiguous.
    """
    # On S3, the folder of a dataset has the dataset's digest as its name, so that no dataset replaces a different one.
    home = join(output, "DIGEST") if output and is_s3(output) else output
    inspection = inspect_inputs(inputs, leave_out=output)
    settings = inspection.settings(settings)
    return PreprocessingPreview(
        inspection=inspection,
        settings=settings,
        estimated=estimate_work(inspection, settings, cores()),
        output=tuple(join(home, name) for name in _RESULTS) if home else (),
    )


def check_preview(preview: PreprocessingPreview, *, max_malformed: float) -> None:
    """Raise DataError if the run would fail, assuming that all input is like the sample."""
    preview.inspection.check_values(preview.settings, max_malformed)
    try:
        check_input(preview.inspection.sample.tally, max_malformed, preview.settings, dry_run=True)
    except DataError as error:
        raise DataError(f"if all input is like the sample, the run will fail: {error}") from error
