"""`shoal preprocess`: turns raw reviews into dataset.h5 and counts.json.

A dry run must show every setting that was inferred from the files, so that the user can see a wrong guess.
"""

from argparse import Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from common.cores import cores
from common.display import size
from common.errors import DataError, UsageError
from corpus.reading.formats import class_name
from jobs.input_options import read_inputs
from jobs.job_settings import LIMITS, PRESET, SETTINGS, read_settings
from shoal.cli.command import command, described_options, option
from shoal.cli.dataset_summary import (
    TOTALS,
    count_figures,
    histogram,
    malformed_places,
    malformed_text,
    settings_text,
)
from shoal.cli.input_options import NOTES, input_options, reading_options, require_s3
from shoal.cli.output import Part, Result, Rows, table
from shoal.cli.output_folder import sole_writer
from shoal.cli.target import Target, where_options
from shoal.interrupt import Detached
from shoal.preprocessing.dataset_warnings import dataset_warnings
from shoal.progress import Bars
from trainer.classification.metrics import TWO_CLASSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpus.dataset_settings import Settings
    from corpus.reading.formats import Format
    from corpus.reading.inputs.inspection import InputInspection
    from corpus.reading.sources import Inputs, Source
    from jobs.merge import MergeResult
    from shoal.preprocessing.preview import PreprocessingPreview

_BETTER = "the stopwords include 'not'; --stopwords keep-negations lets a model distinguish 'not good' from 'good'"
_KINDS = {
    "json": "JSON lines",
    "array": "JSON array",
    "parquet": "Parquet",
    "fasttext": "fastText",
    "text": "one text per line",
}
_DESCRIPTION = """\
Turn raw reviews into a dataset: word ids and labels of distinct texts, split
into training and test rows.

Reads JSON lines, CSV, TSV, Parquet, fastText and plain text. With --deployment,
the deployment's EMR cluster runs the jobs, and Shoal shows the stage and the
cost. The cluster costs money from `shoal deploy` until it has been idle for the
topology's idle_minutes.
"""
_EXAMPLES = """\
\b
Examples:
  shoal preprocess --local --input reviews/*.json.gz --output results/data
      files in SNAP's format; to check first, add --dry-run
  shoal preprocess --local --input train.csv --test-input test.csv \\
      --output results/data
      a separate test set
  shoal preprocess --local --input news.csv --classes 1 2 3 4 \\
      --output results/data
      more than two classes
  shoal preprocess --local --input tens.csv --text-field comment \\
      --rating-range 1 10 --positive-from 7 --output results/data
      a different text field, and ratings from 1 to 10
  shoal preprocess --deployment starter --input s3://my-bucket/
      on a deployment's EMR cluster; the inputs of its topology must contain
      s3://my-bucket
"""
_DETACHED: Rows = {
    "run": "{run} continues without this command",
    "to follow it": "shoal attach {deployment} {run}",
    "to stop it": "shoal stop {deployment} {run}",
}


@command(
    help=_DESCRIPTION,
    epilog=_EXAMPLES,
    notes=NOTES,
)
@where_options
@input_options
@reading_options
@option(
    "--output",
    type=click.Path(),
    metavar="DIR_OR_S3",
    help="with --local: folder or s3://... for dataset.h5 and counts.json",
)
@option(
    "--dry-run",
    is_flag=True,
    help="with --local: show how the input is read, and the expected time and memory; write nothing",
)
@option("--detach", is_flag=True, help="with --deployment: return as soon as the work is submitted to the cluster")
@option(
    "--force",
    is_flag=True,
    help="replace a dataset of other data in --output; with --deployment: create the dataset again, even if a dataset "
    "with the same input and settings exists",
)
@described_options(LIMITS)
@described_options((PRESET, *SETTINGS), group="Dataset settings")
def run(
    *,
    target: Target | None,
    output: str | None,
    dry_run: bool,
    detach: bool,
    force: bool,
    **options: Any,
) -> Result:
    if detach and target is None:
        raise UsageError("--detach requires --deployment")
    try:
        settings = read_settings(Namespace(**options), tuple(map(class_name, options["classes"])), options["preset"])
        inputs = read_inputs(options, settings)
    except DataError as error:
        raise UsageError(str(error)) from error
    _check_place(target, output, dry_run=dry_run)
    require_s3(*inputs.addresses, output)
    how: dict[str, Any] = {"settings": settings, "max_malformed": options["max_malformed"]}
    if dry_run:
        return _preview(inputs, output, **how)
    if target is None:
        from jobs.local import preprocess_locally

        assert output is not None
        with sole_writer(output), Bars():
            merged = preprocess_locally(inputs, output, force=force, **how)
        return result_of(merged, settings)
    try:
        return result_of(_preprocess_on(target, inputs, detach=detach, force=force, **how), settings)
    except Detached as left:
        return Result({"detached": True, "deployment": target.name, "run": str(left)}, [_DETACHED])


def result_of(merged: "MergeResult", settings: "Settings") -> Result:
    """Return the command's result for a new dataset."""
    warnings = dataset_warnings(merged, settings)
    content = {"dataset": merged.dataset, "digest": merged.digest, **merged.counts, "malformed_lines": merged.malformed}
    content |= {"warnings": warnings}
    parts: list[Part] = [
        TOTALS,
        malformed_places(content),
        count_figures(merged.counts, settings.classes or TWO_CLASSES),
    ]
    return Result(content, parts, warnings=warnings)


def _check_place(target: Target | None, output: str | None, *, dry_run: bool) -> None:
    if target is None and output is None and not dry_run:
        raise UsageError("--local requires --output, the folder for dataset.h5 and counts.json")
    if target is not None and dry_run:
        raise UsageError("--dry-run requires --local; it can read s3://..., too")
    if target is not None and output is not None:
        raise UsageError("--output requires --local; a deployment writes its datasets to its data bucket")


def _preprocess_on(target: Target, inputs: "Inputs", **how: Any) -> "MergeResult":
    from shoal.preprocessing.preprocess import preprocess_on_deployment

    deployment = target.deployment_with_warning()
    with Bars():
        return preprocess_on_deployment(deployment, inputs, **how)


def _preview(inputs: "Inputs", output: str | None, *, settings: "Settings", max_malformed: float) -> Result:
    """Return the result of --dry-run. Its exit status is 1 if the sample shows that the real run would fail."""
    from jobs.job_settings import read_stopwords
    from shoal.preprocessing.preview import check_preview, preview_local

    read_stopwords(settings.stopwords, settings.words)
    preview = preview_local(inputs, settings, output=output)
    content = _preview_content(preview)
    settings, labelled = preview.settings, preview.inspection.labelled
    histograms = {"in the sample": content["sample"]["values"]}
    parts: list[Part] = [
        _files(preview.inspection),
        _SAMPLE if content["sample"]["lines"] else "",
        malformed_places(content["sample"]),
        histogram("label" if labelled else "rating", histograms) if histograms["in the sample"] else "",
        _WORK,
        settings_text(content["settings"]),
    ]
    warnings = [*preview.warnings, *([_BETTER] if settings.stopwords == "nltk" else [])]
    failures = []
    try:
        check_preview(preview, max_malformed=max_malformed)
    except DataError as error:
        failures = [str(error)]
    return Result(content, parts, len(failures), warnings, failures)


def _preview_content(preview: "PreprocessingPreview") -> dict[str, Any]:
    inspection = preview.inspection
    sample = inspection.sample
    return {
        "dry_run": True,
        "files": len(inspection.sources),
        "bytes": sum(source.size for source in inspection.sources),
        "plain_bytes": inspection.plain_bytes,
        "rows": inspection.rows,
        "formats": [
            {
                **{name: value for name, value in asdict(group[0].format).items() if name not in ("columns", "keep")},
                "labelled": inspection.labelled,
                "test": group[0].test,
                "class": group[0].code,
                "files": len(group),
                "bytes": sum(source.size for source in group),
                "first": group[0].address,
            }
            for group in _groups(inspection.sources)
        ],
        "sample": {
            "lines": sample.lines,
            "malformed": sample.tally.counts["malformed"],
            "malformed_by_reason": sample.tally.malformed_by_reason,
            "malformed_lines": [asdict(place) for place in sample.tally.malformed_lines()],
            "line_bytes": sample.line_bytes if sample.lines else None,
            "words": sample.words(preview.settings.words),
            "values": dict(sorted(sample.values.items())),
            "example": {"value": sample.example_value, "begins": sample.example},
        },
        "estimate": {**asdict(preview.estimated), "cores": cores()},
        "settings": asdict(preview.settings),
        "output": list(preview.output),
        "warnings": preview.warnings,
    }


_SAMPLE: Rows = {
    "sample": "{sample.lines:plural record}; {sample.words:,.0f} words per text",
    "bytes per record": "{sample.line_bytes:,.0f}",
    "malformed": lambda content: malformed_text(content["sample"]),
    "example": lambda content: (
        "{value}: {begins} ...".format(**content["sample"]["example"]) if content["sample"]["values"] else None
    ),
}
_WORK: Rows = {
    "total": "about {rows:plural record} in {files:plural file}, {bytes:size}",
    "uncompressed": "{plain_bytes:size}",
    "takes about": "{estimate.seconds:duration} on {estimate.cores:plural core}",
    "memory": "up to {estimate.memory_bytes:size}",
    "work space": "about {estimate.disk_bytes:size}",
    "would write": lambda content: ", ".join(content["output"]) or None,
}


def _format_name(form: "Format") -> str:
    if form.kind in _KINDS:
        return _KINDS[form.kind]
    if form.kind == "csv":
        kind = {",": "CSV", "\t": "quoted TSV"}.get(form.separator, f"CSV with {form.separator!r}")
    else:
        kind = "TSV" if form.separator == "\t" else f"columns between {form.separator!r}"
    return f"{kind}, {'with' if form.header else 'without'} header"


def _files(inspection: "InputInspection") -> str:
    heads = ["file", "size", "read as", "text", "label" if inspection.labelled else "rating", "for"]
    lines = []
    for group in _groups(inspection.sources):
        first = group[0]
        form = first.format
        column = "" if form.header or form.kind in ("json", "array", "parquet") else "column "
        value = TWO_CLASSES[first.code] if first.code is not None else f"{column}{form.value}"
        lines.append(
            [
                first.address if len(group) == 1 else f"{len(group):,} like {first.address}",
                size(sum(source.size for source in group)),
                _format_name(form),
                ", ".join(f"{column}{field}" for field in form.text) or "the line",
                "the first word" if form.kind == "fasttext" else value,
                "test" if first.test else "training" if inspection.test_input else "both",
            ]
        )
    return table(lines, heads)


def _groups(sources: "Sequence[Source]") -> "list[list[Source]]":
    groups: dict[tuple[Format, bool, int | None], list[Source]] = {}
    for source in sources:
        groups.setdefault((source.format, source.test, source.code), []).append(source)
    return list(groups.values())
