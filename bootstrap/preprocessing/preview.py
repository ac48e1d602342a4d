"""Preview of a preprocessing run: the detected input format, the estimated duration, and the files that would be
written."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bootstrap.preprocessing.dataset_warnings import threshold_warnings, too_few_warnings
from common.cores import cores
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.acceptance import check_input, label_notes
from corpus.reading.inputs.inspection import InputInspection, inspect_inputs
from corpus.reading.s3 import is_s3
from corpus.reading.sources import Inputs, Source
from corpus.reading.storage import join
from corpus.reading.tally import other_labels
from jobs.preparation import Estimate, estimate_work

if TYPE_CHECKING:
    from bootstrap.aws.deployment import Deployment

_RESULTS = ("dataset.h5", "counts.json")


@dataclass(frozen=True, kw_only=True)
class PreprocessingPreview:
    inspection: InputInspection
    settings: Settings
    """Settings, including settings that were derived from the input."""
    estimated: Estimate
    cores: int
    output: tuple[str, ...]
    """Addresses of the files that would be written."""
    uploads_to: str | None = None
    """Address to which local files would be uploaded first."""

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

    @property
    def uploaded(self) -> list[Source]:
        return [each for each in self.inspection.sources if self.uploads_to and not is_s3(each.address)]


def preview_local(inputs: Inputs, settings: Settings, *, output: str | None) -> PreprocessingPreview:
    """Return a preview of preprocessing on this machine.

    Raises DataError if the input is unreadable or ambiguous.
    """
    # On S3, the folder of a dataset has the dataset's digest as its name, so that no dataset replaces a different one.
    home = join(output, "DIGEST") if output and is_s3(output) else output
    return _preview(inputs, settings, cores=cores(), output=output, home=home, uploads_to=None)


def preview_on_deployment(inputs: Inputs, settings: Settings, deployment: "Deployment") -> PreprocessingPreview:
    """Return a preview of preprocessing on a deployment's cluster.

    Raises DataError if the input is unreadable. Raises ShoalError if the cluster cannot read an S3 address or is
    terminated.
    """
    from bootstrap.aws.objects import RAW_PREFIX
    from bootstrap.preprocessing.cluster import EmrCluster
    from infra import topology

    for address in filter(is_s3, inputs.addresses):
        deployment.require_readable(address, topology.OUTPUT_RAW_BUCKET, topology.OUTPUT_DATA_BUCKET)
    return _preview(
        inputs,
        settings,
        cores=EmrCluster(deployment).workers().vcpus,
        output=None,
        home=f"s3://{deployment.output(topology.OUTPUT_DATA_BUCKET)}/{topology.DATASETS_PREFIX}DIGEST",
        uploads_to=f"s3://{deployment.output(topology.OUTPUT_RAW_BUCKET)}/{RAW_PREFIX}",
    )


def _preview(
    inputs: Inputs, settings: Settings, *, cores: int, output: str | None, home: str | None, uploads_to: str | None
) -> PreprocessingPreview:
    inspection = inspect_inputs(inputs, leave_out=output)
    settings = inspection.settings(settings)
    return PreprocessingPreview(
        inspection=inspection,
        settings=settings,
        estimated=estimate_work(inspection, settings, cores),
        cores=cores,
        output=tuple(join(home, name) for name in _RESULTS) if home else (),
        uploads_to=uploads_to,
    )


def check_preview(preview: PreprocessingPreview, *, max_malformed: float) -> None:
    """Raise DataError if the run would fail, assuming that all input is like the sample."""
    preview.inspection.check_values(preview.settings, max_malformed)
    try:
        check_input(preview.inspection.sample.tally, max_malformed, preview.settings, dry_run=True)
    except DataError as error:
        raise DataError(f"if all input is like the sample, the run will fail: {error}") from error
