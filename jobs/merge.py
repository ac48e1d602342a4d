"""The part files to one dataset, in bounded memory.

    python -m jobs.merge --parts FOLDER --encoded FOLDER --output FOLDER --summary FILE

Parts are named by the prefix of their rows' digests and sorted inside, so merging only concatenates.
"""

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from json import dumps, loads
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from corpus.counts import nested
from corpus.dataset import SPLITS, DatasetWriter, open_dataset
from corpus.errors import DataError
from jobs.records import COUNTS_KEY, read_records, sum_counts
from jobs.storage import is_s3, join, list_files, open_lines, readable, writable, write_text
from jobs.task import run_as_command

DATASET_NAME = "dataset.h5"
COUNTS_NAME = "counts.json"


@dataclass(frozen=True, kw_only=True)
class Merged:
    """What a merge made: the address of the dataset, what was counted, the digest of the arrays."""

    dataset: str
    counts: dict[str, Any]
    digest: str


def merge(parts: str, encoded: str, output: str) -> Merged:
    """Concatenate the part files of a folder to `output`/dataset.h5, with counts.json beside it.

    On S3 both go into a folder of `output` named by the dataset's digest: there no dataset ever replaces
    another with other rows. `encoded` is the folder with the counts of all jobs. Raises DataError when parts are
    missing or nothing is left to train on.
    """
    addresses = list_files(parts)
    if not addresses:
        raise DataError(f"no part files in {parts}; every text was empty or held only stopwords")
    flat: Counter[str] = Counter()
    for part in list_files(encoded):
        flat.update(sum_counts(value for key, value in read_records(open_lines(part)) if key == COUNTS_KEY))
    # Beside the parts, so that a run which is killed here leaves nothing in the folder of the results.
    with TemporaryDirectory(prefix="shoal-merge-", dir=None if is_s3(parts) else Path(parts).parent) as folder:
        merged = Path(folder) / DATASET_NAME
        counts, digest = _concatenate(addresses, flat, merged)
        home = join(output, digest) if is_s3(output) else output
        with writable(join(home, DATASET_NAME)) as path:
            merged.replace(path)
        write_text(join(home, COUNTS_NAME), dumps(counts, indent=2) + "\n")
    return Merged(dataset=join(home, DATASET_NAME), counts=counts, digest=digest)


def _concatenate(addresses: Sequence[str], flat: Counter[str], merged: Path) -> tuple[dict[str, Any], str]:
    """Write the rows of all parts, in order, to one file; returns the counts and the digest."""
    with readable(addresses[0]) as path, open_dataset(path) as first:
        settings, vocabulary, stopwords = first.settings, first.vocabulary, first.stopwords
    counts = nested(flat, settings)
    with DatasetWriter(merged, settings) as writer:
        for address in addresses:
            with readable(address) as path, open_dataset(path) as part:
                for split, rows_of in zip(SPLITS, (part.train, part.test), strict=True):
                    for rows in rows_of.blocks():
                        writer.append(split, rows)
        _check_rows(writer.rows, counts)
        digest = writer.finish(vocabulary=vocabulary, stopwords=stopwords, counts=counts)
    return counts, digest


def read_merged(address: str) -> Merged:
    """What a merge said of itself under its `--summary`."""
    return Merged(**loads(b"".join(open_lines(address))))


def _check_rows(rows: dict[str, int], counts: dict[str, Any]) -> None:
    for split in SPLITS:
        if rows[split] != counts[split]:
            raise DataError(
                f"the part files hold {rows[split]} rows of {split}, but {counts[split]} were counted; "
                "a part was lost, so run the preprocessing again"
            )
    if not counts["train"]:
        raise DataError("no text is left to train on; give more input")


def run(arguments: Sequence[str]) -> Merged:
    """Merge as the arguments of a step say."""
    parser = ArgumentParser(prog="jobs.merge", description="Concatenate part files to one dataset.")
    parser.add_argument("--parts", required=True, metavar="FOLDER", help="the part files of jobs.encode")
    parser.add_argument("--encoded", required=True, metavar="FOLDER", help="the records of jobs.encode")
    parser.add_argument("--output", required=True, metavar="FOLDER", help="where the dataset goes")
    parser.add_argument("--summary", required=True, metavar="FILE", help="where to say what was made")
    options = parser.parse_args(arguments)
    merged = merge(options.parts, options.encoded, options.output)
    write_text(options.summary, dumps(asdict(merged)))
    return merged


if __name__ == "__main__":
    run_as_command(lambda arguments: run(arguments).dataset)
