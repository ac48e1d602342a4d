"""`shoal dataset info`: shows a dataset's settings, counts, digest, and a few rows as text.

Do not read whole arrays, because a dataset on S3 can have many gigabytes. Only --check reads the whole dataset.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from common.display import plural
from corpus.layout import DATASET_NAME
from corpus.reading.s3 import is_s3
from shoal.cli.command import command, option
from shoal.cli.dataset_summary import count_figures, settings_text
from shoal.cli.input_options import require_s3
from shoal.cli.output import Result, Rows
from trainer.classification.metrics import TWO_CLASSES

if TYPE_CHECKING:
    from corpus.dataset import Dataset, Split

_READ_AHEAD = 1 << 20
_ROWS_SHOWN = 3
"""Number of rows of each split that are shown as text."""
_CLASSES_SHOWN = 20
_NAMELESS = ("<padding>", "<unknown>")


@click.group(
    help="Inspect datasets made by `shoal preprocess`.",
    epilog="Example: shoal dataset info results/data",
)
def run() -> None:
    """Group of the commands about datasets."""


@command(
    name="info",
    short_help="show settings, counts, digest and a few rows",
    help="Show the settings, counts and digest of a dataset or of one of its part files, and a few rows as text. "
    "From S3, the command reads only the data that it shows.",
    epilog="Examples: shoal dataset info results/data; "
    "shoal dataset info s3://bucket/datasets/DIGEST/dataset.h5 --check",
)
@click.argument(
    "file", type=click.Path(), metavar="PATH_OR_S3", help="a file dataset.h5, its folder, or its S3 address"
)
@option("--check", is_flag=True, help="read the whole dataset, and verify its recorded digest")
def info(file: str, check: bool) -> Result:
    """The command `shoal dataset info`."""
    require_s3(file)
    if not is_s3(file) and Path(file).is_dir():
        file = str(Path(file) / DATASET_NAME)
    with _opened(file, whole=check) as (dataset, stored_bytes):
        if check:
            dataset.require_digest(dataset.computed_digest())
        content = _content(file, dataset, stored_bytes)
        content["checked"] = check
    classes = _classes(content)
    return Result(
        content,
        [
            _HEAD,
            settings_text(content["settings"]),
            count_figures(content["counts"], classes)
            if content["counts"]
            else "no counts: only the whole dataset has counts, not its part files",
            *(_sample_text(row, classes) for row in content["sample"]),
        ],
    )


run.add_command(info)


@contextmanager
def _opened(address: str, *, whole: bool) -> Iterator[tuple["Dataset", int]]:
    """Yield an open dataset and its size in bytes. From S3, fetch only the ranges that are read, unless `whole`."""
    from corpus.dataset import open_dataset
    from corpus.reading.storage import open_range, readable

    if is_s3(address) and not whole:
        with closing(open_range(address, ahead=_READ_AHEAD)) as file, open_dataset(address, file) as dataset:
            yield dataset, file.seek(0, 2)
        return
    with ExitStack() as stack:
        path = stack.enter_context(readable(address))
        content = stack.enter_context(path.open("rb")) if is_s3(address) else None
        yield stack.enter_context(open_dataset(address, content)), path.stat().st_size


def _content(address: str, dataset: "Dataset", stored_bytes: int) -> dict[str, Any]:
    from corpus.layout import layout_version

    splits = (dataset.train, dataset.test)
    words = [*_NAMELESS, *dataset.vocabulary]
    return {
        "dataset": address,
        "bytes": stored_bytes,
        "layout_version": layout_version(dataset.settings),
        "digest": dataset.digest,
        "arrays": {
            f"/{split.name}/{name}": {"shape": array.shape, "dtype": str(array.dtype)}
            for split in splits
            for name, array in split.arrays.items()
        },
        "rows": {split.name: len(split) for split in splits},
        "vocabulary": len(dataset.vocabulary),
        "stopwords": len(dataset.stopwords),
        "settings": dataset.settings.to_json(),
        "counts": dataset.counts,
        "sample": [row for split in splits for row in _sample(split, words)],
    }


def _sample(split: "Split", words: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the first rows of a split. They are a random sample, because rows are sorted by digest."""
    rows = split.rows(0, _ROWS_SHOWN)
    for number, (length, label, rating) in enumerate(zip(*rows[1:], strict=True)):
        tokens = rows.part(number, number + 1).tokens.reshape(-1)[:length].tolist()
        known = [words[word] if word < len(words) else f"<no word {word}>" for word in tokens]
        found = {"split": split.name, "row": number, "label": int(label), "rating": int(rating)}
        yield {**found, "words": known}


def _classes(content: Mapping[str, Any]) -> Sequence[str]:
    classes: Sequence[str] = content["settings"].get("classes", TWO_CLASSES)
    return classes


def _digest(content: Mapping[str, Any]) -> str:
    read = "verified against all arrays" if content["checked"] else "as recorded; --check verifies it"
    return f"{content['digest']} ({read})"


def _rows(content: Mapping[str, Any]) -> str:
    splits = ", ".join(f"{count:,} to {split}" for split, count in content["rows"].items())
    rows = sum(content["rows"].values())
    shapes = [content["arrays"][f"/{name}/tokens"]["shape"] for name in content["rows"]]
    if not rows or len(shapes[0]) > 1:
        return splits
    tokens = sum(shape[0] for shape in shapes)
    return f"{splits}; whole texts of {tokens / rows:,.1f} words on average, {plural(tokens, 'word')} in total"


def _class_names(content: Mapping[str, Any]) -> str:
    classes = _classes(content)
    more = f", and {len(classes) - _CLASSES_SHOWN:,} more" if len(classes) > _CLASSES_SHOWN else ""
    return f"{len(classes):,}: {', '.join(classes[:_CLASSES_SHOWN])}{more}"


def _sample_text(row: Mapping[str, Any], classes: Sequence[str]) -> str:
    rating = f", rated {row['rating']}" if row["rating"] else ""
    label = classes[row["label"]] if row["label"] < len(classes) else "no label"
    head = f"/{row['split']} row {row['row']}: {label}{rating}, {plural(len(row['words']), 'word')}"
    return f"{head}\n  {' '.join(row['words'])}"


_HEAD: Rows = {
    "dataset": "{dataset}",
    "size": "{bytes:size}",
    "layout": "version {layout_version}",
    "digest": _digest,
    "rows": _rows,
    "classes": _class_names,
    "words": "{vocabulary:,} in the vocabulary, {stopwords:,} stopwords",
}
