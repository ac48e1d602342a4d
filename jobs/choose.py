"""Chooses the vocabulary from the reducers' candidates, and rejects bad input.

    python -m jobs.choose --counts FOLDER --output FILE --settings JSON [--max-malformed SHARE]

At this step all lines are counted, and the expensive steps come next. So this step rejects input that has damaged files
or too many malformed lines. The error lists the number of malformed lines for each reason.
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain

import orjson

from common.display import plural
from common.errors import DataError
from common.json_values import from_json
from common.options import argparse_argument
from corpus.dataset_settings import Settings
from corpus.reading.acceptance import check_input, first_positive_code
from corpus.reading.formats import LABELS
from corpus.reading.storage import list_files, open_lines, write_text
from corpus.reading.tally import Tally, is_tally_key
from corpus.rules import most_frequent
from jobs.job import run_as_command
from jobs.job_settings import LIMITS, parse_settings
from jobs.records import read_records


@dataclass(frozen=True, kw_only=True)
class VocabularyChoice:
    """Chosen vocabulary: `words`, the most frequent first; `counts`, the occurrences of each word; and `positive_from`,
    the smallest code of a positive rating.

    Words and counts are separate lists, because a list of millions of pairs takes several times the memory.
    """

    positive_from: int
    words: list[str]
    counts: list[int]


def read_vocabulary_choice(address: str) -> VocabularyChoice:
    """Read the file that `choose_vocabulary` wrote. Raises DataError if the file has other content."""
    try:
        content = orjson.loads(b"".join(open_lines(address)))
        return from_json(VocabularyChoice, content)
    except (AttributeError, DataError, TypeError, ValueError) as error:
        raise DataError(
            f"{address} is not a vocabulary from jobs.choose: {error}; remove it, and run the preprocessing again"
        ) from error


def choose_vocabulary(words: str, output: str, settings: Settings, max_malformed: float) -> VocabularyChoice:
    """Choose the vocabulary from the records in the folder `words`, and write it to `output`.

    Raises DataError, and writes nothing, if the share of malformed lines exceeds `max_malformed`, if an input file is
    damaged, or if there are no lines, no texts, or unknown labels.
    """
    tally = Tally()
    best: list[tuple[bytes, int]] = []
    for part in list_files(words):  # one file at a time, to keep only this file and the best words so far in memory
        best = most_frequent(chain(best, _candidates(part, tally)), settings.vocabulary_size)
    check_input(tally, max_malformed, settings)
    if not tally.counts["texts"]:
        lines = plural(tally.counts["lines"], "line")
        raise DataError(f"no text in the {lines} of the input has a word; give input with words")
    by_code = {code: tally.counts[f"codes.before.{code}"] for code in range(len(LABELS))} if settings.labelled else {}
    positive_from = first_positive_code(by_code, settings)
    if not best:
        texts = tally.counts["texts"]
        raise DataError(
            f"no words remain for the vocabulary, because each of the input's {plural(texts, 'text')} has only "
            "stopwords or is in the test set; give more input, or use fewer stopwords with --stopwords"
        )
    choice = VocabularyChoice(
        positive_from=positive_from, words=[word.decode() for word, _ in best], counts=[count for _, count in best]
    )
    write_text(output, orjson.dumps(asdict(choice)).decode())
    return choice


def _candidates(part: str, tally: Tally) -> Iterator[tuple[bytes, int]]:
    """Yield the words and their counts from the file of records `part`. Add the file's tally records to `tally`."""
    for key, value in read_records(open_lines(part)):
        if is_tally_key(key):
            tally.add_records(key, [value])
        else:
            yield key, int(value)


def run(arguments: Sequence[str]) -> VocabularyChoice:
    parser = ArgumentParser(prog="jobs.choose", description="Choose the vocabulary from the output of jobs.vocabulary.")
    for name in ("counts", "output", "settings"):
        parser.add_argument(f"--{name}", required=True)
    for each in LIMITS:
        parser.add_argument(*each.flags, **argparse_argument(each))
    options = parser.parse_args(arguments)
    return choose_vocabulary(
        options.counts,
        options.output,
        parse_settings(options.settings),
        options.max_malformed,
    )


if __name__ == "__main__":
    run_as_command(lambda arguments: f"{len(run(arguments).words)} words")
