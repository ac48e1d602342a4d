"""The output of `shoal preprocess --dry-run`: how each file is read, a sample, and what the work would take and write.

Show each setting that was found out and not given, because a wrong guess must be visible.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bootstrap.cli.dataset_summary import histogram
from bootstrap.cli.figures import duration, size
from bootstrap.cli.output import percent, table
from bootstrap.preprocessing.preview import PreprocessingPreview
from common.display import plural
from corpus.dataset_settings import Settings
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
                **{name: value for name, value in group[0].format.to_json().items() if name not in ("columns", "keep")},
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
            "malformed": sample.malformed,
            "malformed_by_reason": sample.malformed_by_reason,
            "malformed_lines": [asdict(place) for place in sample.malformed_lines],
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


def text(preview: PreprocessingPreview) -> str:
    understanding, estimated = preview.understanding, preview.estimated
    sample = understanding.sample
    parts = [_files(understanding)]
    if sample.lines:
        words = sample.words(preview.settings.words)
        line_bytes = f", {sample.line_bytes:,.0f} bytes each" if sample.values else ""
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in sample.malformed_by_reason.items())
        seen = [
            ("sample", f"{plural(sample.lines, 'record')}{line_bytes}; {words:,.0f} words a text"),
            (
                "malformed",
                f"{sample.malformed:,} ({percent(sample.malformed / sample.lines)})" + f": {reasons}" * bool(reasons),
            ),
            *(
                ("", f"{place.reason}: {place.file}, line {place.line}: {place.begins}")
                for place in sample.malformed_lines[:3]
            ),
        ]
        if sample.values:
            seen.append(("a text as read", f"{sample.example_value}: {sample.example} ..."))
        parts.append(table(seen))
    if sample.values:
        title = "label" if understanding.labelled else "rating"
        parts.append(histogram(title, {"in the sample": dict(sorted(sample.values.items()))}))
    packed = sum(source.size for source in understanding.sources)
    uploads = []
    if preview.uploaded:
        sent = size(sum(source.size for source in preview.uploaded))
        uploads = [("would upload", f"{plural(len(preview.uploaded), 'file')}, {sent}, to {preview.uploads_to}")]
    files = plural(len(understanding.sources), "file")
    unpacked = f", {size(understanding.plain_bytes)} unpacked" if understanding.plain_bytes != packed else ""
    parts.append(
        table(
            [
                (
                    "in all",
                    f"about {plural(understanding.rows, 'record')} in {files}, {size(packed)}{unpacked}",
                ),
                ("takes about", f"{duration(estimated.seconds)} on {plural(preview.cores, 'core')}"),
                ("memory", f"up to {size(estimated.memory_bytes)}"),
                ("work space", f"about {size(estimated.disk_bytes)}"),
                ("settings", _settings(preview.settings)),
                *([("", _BETTER)] if preview.settings.stopwords == "nltk" else []),
                *uploads,
                *(("would write" if not number else "", address) for number, address in enumerate(preview.output)),
            ]
        )
    )
    parts += [f"warning: {each}" for each in preview.warnings]
    return "\n\n".join(parts)


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


def _settings(settings: Settings) -> str:
    classes = (
        f"positive is {settings.positive_label!r}"
        if settings.positive_label is not None
        else f"{len(settings.classes)} classes: {', '.join(settings.classes)}"
        if settings.classes
        else "classes by label"
        if settings.labelled
        else _threshold(settings)
    )
    test = "own files to test" if settings.test_input else f"{percent(settings.test_share)} to test"
    rows = "whole texts as rows" if settings.ragged else f"rows of {settings.row_length} words"
    rule = ", words with digits and punctuation" if settings.words == "tokens" else ""
    duplicates = ", duplicates kept" if settings.duplicates else ""
    return (
        f"{rows}{rule}{duplicates}, a vocabulary of {settings.vocabulary_size:,}, {classes}, {test}, "
        f"stopwords: {settings.stopwords}"
    )


def _threshold(settings: Settings) -> str:
    low, high, positive = map(settings.in_units, (*settings.rating_range, settings.positive_from))
    return (
        f"positive from {positive} of {low} to {high}"
        + {1: "", 2: ", in halves", 10: ", in tenths"}[settings.rating_steps]
    )
