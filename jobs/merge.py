"""Last step: concatenates the part files into one dataset, at the speed of the disk and in bounded memory.

A part is named by the digest prefix of its rows, and its rows are sorted. So merging only concatenates blocks of whole
chunks, which threads compress. A merge can be killed at any moment and must then leave no file under a final name. The
next merge removes the temporary folder of a killed merge.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from json import dumps
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from common.display import plural
from common.errors import DataError, explain_full_disk
from common.json_values import from_json, parse_json_object
from common.private_folders import temporary_folder
from corpus.counts import final_counts
from corpus.dataset import DatasetWriter, open_dataset
from corpus.file_checks import require_counts
from corpus.layout import COUNTS_NAME, DATASET_NAME, MIN_TRAINING_ROWS, SPLITS, is_digest
from corpus.reading.s3 import is_s3
from corpus.reading.storage import join, list_files, open_lines, readable, writable, write_text
from corpus.reading.tally import MalformedLine, Tally
from jobs.choose import VocabularyChoice, read_vocabulary_choice
from jobs.plan import Plan


@dataclass(frozen=True, kw_only=True)
class MergeResult:
    """Result of a merge: the address of the dataset, its counts, and the digest of its arrays."""

    dataset: str
    counts: dict[str, Any]
    digest: str
    malformed: list[dict[str, Any]]
    """First malformed lines for each reason. An entry has the reason, file, line number (from 1) and beginning of a
    line."""
    warnings: list[str] = field(default_factory=list)
    """Warnings about the input. The caller of the merge adds them."""


def merge_parts(plan: Plan, tally: Tally, report: Callable[[int], None]) -> MergeResult:
    """Concatenate the part files into the dataset; see `make_dataset`.

    `report` is called with the number of bytes of each part.
    """

    def append(writer: DatasetWriter) -> None:
        for address in list_files(plan.parts):
            with readable(address) as path:
                with open_dataset(path) as part:
                    for split in (part.train, part.test):
                        for rows in split.blocks():
                            writer.append(split.name, rows)
                report(path.stat().st_size)

    return make_dataset(plan, read_vocabulary_choice(plan.choice), tally, append)


def make_dataset(
    plan: Plan,
    choice: VocabularyChoice,
    tally: Tally,
    append: Callable[[DatasetWriter], None],
    *,
    option: str = "--output",
) -> MergeResult:
    """Write dataset.h5 and counts.json to the plan's output folder.

    On S3, both files are in a folder below the output folder that is named by the dataset's digest. So a dataset never
    replaces a dataset with different rows. `append` appends all rows, after which `tally` must have all counts. The
    dataset is written last, after counts.json. `option` is the command-line option that messages about a full disk
    name. Raises DataError if the rows contradict the counts, or if there is no training row.
    """
    # The temporary folder is in the folder of the work, so that a killed merge leaves nothing in the folder of the
    # results.
    parent = Path(gettempdir()) if is_s3(plan.work) else Path(plan.work)
    with explain_full_disk(parent, option), temporary_folder("shoal-merging-", parent) as folder:
        merged = folder / DATASET_NAME
        # Compress only for S3, because compression is slower than a disk but faster than a network.
        with DatasetWriter(merged, plan.settings, packed=is_s3(plan.output), option=option) as writer:
            append(writer)
            counts = final_counts(
                tally.counts,
                settings=plan.settings,
                positive_from=choice.positive_from,
                frequent_words=zip(choice.words, choice.counts, strict=False),
            )
            _check_rows(writer.rows, counts)
            digest = writer.finish(vocabulary=choice.words, stopwords=frozenset(plan.stopwords), counts=counts)
        target = join(plan.output, digest) if is_s3(plan.output) else plan.output
        write_text(join(target, COUNTS_NAME), dumps(counts, indent=2) + "\n")
        with writable(join(target, DATASET_NAME)) as path:
            shutil.move(merged, path)
    return MergeResult(
        dataset=join(target, DATASET_NAME),
        counts=counts,
        digest=digest,
        malformed=[asdict(place) for place in tally.malformed_lines()],
    )


def read_merge_result(address: str) -> MergeResult:
    """Read the output of the last step. Raises DataError if the file has other content.

    Every value is checked, because in a bucket the file could have been written by root on any node.
    """
    written = b"".join(open_lines(address))
    try:
        content = parse_json_object(written)
        result = from_json(MergeResult, content)
        require_counts(result.counts)
        if not is_digest(result.digest):
            raise DataError("its digest is not 32 hexadecimal digits")
        for place in result.malformed:
            from_json(MalformedLine, place)
    except (DataError, AttributeError, TypeError, ValueError) as error:
        raise DataError(
            f"{address} is not the summary of a merge: {error}; remove it, and run the preprocessing again"
        ) from error
    return result


def _check_rows(rows: Mapping[str, int], counts: Mapping[str, Any]) -> None:
    for split in SPLITS:
        if rows[split] != counts[split]:
            raise DataError(
                f"the part files have {plural(rows[split], 'row')} of {split}, but the jobs counted {counts[split]:,}; "
                "a part was lost, so run the preprocessing again"
            )
    if not counts["train"]:
        raise DataError(
            f"no training text remains, but training needs at least {MIN_TRAINING_ROWS} rows; give more input"
        )
