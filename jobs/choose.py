"""Third step: chooses the vocabulary from the candidates, and rejects bad input.

At this step all lines are counted, and the expensive steps come next. So this step rejects input that has damaged files
or too many malformed lines. The error lists the number of malformed lines for each reason.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice

import orjson

from common.display import plural
from common.errors import DataError
from common.json_values import from_json
from corpus.reading.acceptance import check_input, first_positive_code
from corpus.reading.formats import LABELS
from corpus.reading.storage import open_lines, write_text
from corpus.reading.tally import Tally, is_tally_key
from corpus.rules import most_frequent
from jobs.plan import Plan
from jobs.records import Record


@dataclass(frozen=True, kw_only=True)
class VocabularyChoice:
    """Chosen vocabulary: `words`, the most frequent first; `counts`, the occurrences of each word; and `positive_from`,
    the smallest code of a positive rating.

    Words and counts are separate lists, because a list of millions of pairs takes several times the memory.
    """

    positive_from: int
    words: list[str]
    counts: list[int]


def candidates_of(records: Iterable[Record], tally: Tally) -> Iterator[tuple[bytes, int]]:
    """Yield the candidates in the records of the second step, and add the tallies in them to `tally`."""
    for key, value in records:
        if is_tally_key(key):
            tally.add_records(key, [value])
        else:
            yield key, int(value)


def read_vocabulary_choice(address: str) -> VocabularyChoice:
    """Read the file that `write_choice` wrote. Raises DataError if the file has other content."""
    try:
        content = orjson.loads(b"".join(open_lines(address)))
        return from_json(VocabularyChoice, content)
    except (AttributeError, DataError, TypeError, ValueError) as error:
        raise DataError(
            f"{address} is not a vocabulary from jobs.choose: {error}; remove it, and run the preprocessing again"
        ) from error


def choose_vocabulary(candidates: Iterable[tuple[bytes, int]], plan: Plan, tally: Tally) -> VocabularyChoice:
    """Choose the vocabulary from words with their counts. `tally` has the counts of all input.

    Raises DataError if the share of malformed lines exceeds the plan's limit, if an input file is damaged, or if there
    are no lines, no texts, or unknown labels.
    """
    settings = plan.settings
    best: list[tuple[bytes, int]] = []
    candidates = iter(candidates)
    while some := [*islice(candidates, settings.vocabulary_size)]:  # keep only the best words so far in memory
        best = most_frequent([*best, *some], settings.vocabulary_size)
    check_input(tally, plan.max_malformed, settings)
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
    words, counts = b" ".join([word for word, _ in best]), [count for _, count in best]
    best.clear()  # so that its memory serves the words
    return VocabularyChoice(positive_from=positive_from, words=words.decode().split(" "), counts=counts)


def write_choice(choice: VocabularyChoice, address: str) -> None:
    write_text(address, orjson.dumps(asdict(choice)).decode())
