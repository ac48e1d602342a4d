"""The output of `shoal preprocess --dry-run`: how each file is read, a sample, and what the work would take and write.

Show each setting that was found out and not given, because a wrong guess must be visible.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bootstrap.cli.figures import size
from bootstrap.cli.learning.dataset_summary import histogram, malformed_places, malformed_text, settings_table
from bootstrap.cli.output import Part, Result, Rows, table
from bootstrap.preprocessing.preview import PreprocessingPreview, check_preview
from common.display import plural
from common.errors import DataError
from corpus.reading.formats import Format
from corpus.reading.inputs.understanding import Understanding
from corpus.reading.sources import Source

_FILES_SHOWN = 12
_BETTER = "these stopwords contain 'not'; with --stopwords keep-negations a model distinguishes 'not good' from 'good'"
_KINDS = {"json": "JSON lines", "parquet": "Parquet", "fasttext": "fastText", "text": "a text a line"}


def content(preview: PreprocessingPreview) -> dict[str, Any]:
    understanding = preview.understanding
    sample = understanding.sample
    return {
        "dry_run": True,
        "files": len(understanding.sources),
        "bytes": sum(source.size for source in understanding.sources),
        "plain_bytes": understanding.plain_bytes,
        "rows": understanding.rows,
        "formats": [
            {
                **{name: value for name, value in asdict(group[0].format).items() if name not in ("columns", "keep")},
                "labelled": understanding.labelled,
                "test": group[0].test,
                "class": group[0].code,
                "files": len(group),
                "bytes": sum(source.size for source in group),
                "first": group[0].address,
            }
            for group in _groups(understanding.sources)
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
        "estimate": {**asdict(preview.estimated), "cores": preview.cores},
        "settings": asdict(preview.settings),
        "uploaded": [source.address for source in preview.uploaded],
        "output": list(preview.output),
        "warnings": preview.warnings,
    }


def preview_result(preview: PreprocessingPreview, *, max_malformed: float, allow_damaged: bool) -> Result:
    """The result of a dry run, which fails where the sample shows that the run would."""
    found = content(preview)
    labelled, settings = preview.understanding.labelled, preview.settings
    histograms = {"in the sample": found["sample"]["values"]}
    parts: list[Part] = [
        _files(preview.understanding),
        _SAMPLE if found["sample"]["lines"] else "",
        malformed_places(found["sample"]),
        histogram("label" if labelled else "rating", histograms) if histograms["in the sample"] else "",
        _WORK,
        settings_table(found["settings"]),
    ]
    warnings = [*preview.warnings, *([_BETTER] if settings.stopwords == "nltk" else [])]
    failures = []
    try:
        check_preview(preview, max_malformed=max_malformed, allow_damaged=allow_damaged)
    except DataError as error:
        failures = [str(error)]
    return Result(found, parts, len(failures), warnings, failures)


_SAMPLE: Rows = {
    "sample": "{sample.lines:plural record}; {sample.words:,.0f} words a text",
    "bytes of a record": "{sample.line_bytes:,.0f}",
    "malformed": lambda found: malformed_text(found["sample"]),
    "a text as read": lambda found: (
        "{value}: {begins} ...".format(**found["sample"]["example"]) if found["sample"]["values"] else None
    ),
}
_WORK: Rows = {
    "in all": "about {rows:plural record} in {files:plural file}, {bytes:size}",
    "unpacked": "{plain_bytes:size}",
    "takes about": "{estimate.seconds:duration} on {estimate.cores:plural core}",
    "memory": "up to {estimate.memory_bytes:size}",
    "work space": "about {estimate.disk_bytes:size}",
    "would upload": lambda found: plural(len(found["uploaded"]), "file") if found["uploaded"] else None,
    "would write": lambda found: ", ".join(found["output"]) or None,
}


def format_name(form: Format) -> str:
    encoding = f", {form.encoding}" if form.encoding else ""
    if form.kind in _KINDS:
        return _KINDS[form.kind] + encoding
    if form.kind == "csv":
        kind = {",": "CSV", "\t": "quoted TSV"}.get(form.separator, f"CSV with {form.separator!r}")
        kind += ', quotes as \\"' if form.escapes else ""
    else:
        kind = "TSV" if form.separator == "\t" else f"columns between {form.separator!r}"
    return f"{kind}, {'with' if form.header else 'without'} header{encoding}"


def _files(understanding: Understanding) -> str:
    sources = understanding.sources
    few = len(sources) <= _FILES_SHOWN
    groups = [[source] for source in sources] if few else _groups(sources)
    heads = [
        "file" if few else "files",
        "size",
        "read as",
        "text",
        "label" if understanding.labelled else "rating",
        "for",
    ]
    lines = []
    for group in groups:
        first = group[0]
        form = first.format
        column = "" if form.header or form.kind in ("json", "parquet") else "column "
        value = ("negative", "positive")[first.code] if first.code is not None else f"{column}{form.value}"
        lines.append(
            [
                first.address if len(group) == 1 else f"{len(group):,} like {first.address}",
                size(sum(source.size for source in group)),
                format_name(form),
                ", ".join(f"{column}{field}" for field in form.text) or "the line",
                "the first word" if form.kind == "fasttext" else value,
                "test" if first.test else "training" if understanding.test_input else "both",
            ]
        )
    return table(lines, heads)


def _groups(sources: Sequence[Source]) -> list[list[Source]]:
    """The files by how they are read and what for, in the order of the first of each."""
    groups: dict[tuple[Format, bool, int | None], list[Source]] = {}
    for source in sources:
        groups.setdefault((source.format, source.test, source.code), []).append(source)
    return list(groups.values())
