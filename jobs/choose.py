"""Third step: chooses the vocabulary from the candidates, and rejects bad input.

At this step all lines are counted, and the expensive steps come next. So this step rejects input that has damaged files
or too many malformed lines. The error lists the number of malformed lines for each reason.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice

import numpy as np
import orjson

from common.display import plural
from common.errors import DataError
from common.json_values import from_json
from corpus.reading.acceptance import check_input, first_positive_code
from corpus.reading.formats import LABELS
from corpus.reading.storage import open_lines, write_text
from corpus.reading.tally import Tally, is_tally_key
from jobs.plan import Plan
from jobs.records import Record
from jobs.words import FrequentWords

_BLOCK_RECORDS = 1 << 16


@dataclass(frozen=True, kw_only=True)
class VocabularyChoice:
    """Chosen vocabulary: `joined`, the words separated by spaces, the most frequent first; `counts`, the occurrences of
    each word; and `positive_from`, the smallest code of a positive rating.

    The words are one string, because a list of millions of strings takes ten times the memory.
    """

    positive_from: int
    joined: str
    counts: list[int]

    @property
    def words(self) -> list[str]:
        return self.joined.split(" ")


def read_candidates(records: Iterable[Record], plan: Plan, tally: Tally) -> FrequentWords:
    """Return the candidates in the records of the second step, and add the tallies in them to `tally`."""
    candidates = FrequentWords(plan.settings.vocabulary_size)
    records = iter(records)
    while block := [*islice(records, _BLOCK_RECORDS)]:
        words = {key: int(value) for key, value in block if not is_tally_key(key)}
        candidates.add([*words], np.fromiter(words.values(), np.int64))
        for key, value in block:
            if is_tally_key(key):
                tally.add_records(key, [value])
    return candidates


def read_vocabulary_choice(address: str) -> VocabularyChoice:
    """Read the file that `write_choice` wrote. Raises DataError if the file has other content."""
    try:
        content = orjson.loads(b"".join(open_lines(address)))
        choice = from_json(VocabularyChoice, content)
        if len(choice.words) != len(choice.counts):
            raise DataError(f"it has {plural(len(choice.words), 'word')}, but {plural(len(choice.counts), 'count')}")
        return choice
    except (AttributeError, DataError, TypeError, ValueError) as error:
        raise DataError(
            f"{address} is not a vocabulary from jobs.choose: {error}; remove it, and run the preprocessing again"
        ) from error


def choose_vocabulary(candidates: FrequentWords, plan: Plan, tally: Tally) -> VocabularyChoice:
    """Take the vocabulary from the candidates. `tally` has the counts of all input.

    Raises DataError if the share of malformed lines exceeds the plan's limit, if an input file is damaged, or if there
    are no lines, no texts, or unknown labels.
    """
    settings = plan.settings
    check_input(tally, plan.max_malformed, settings)
    if not tally.counts["texts"]:
        lines = plural(tally.counts["lines"], "line")
        raise DataError(f"no text in the {lines} of the input has a word; give input with words")
    by_code = {code: tally.counts[f"codes.before.{code}"] for code in range(len(LABELS))} if settings.labelled else {}
    positive_from = first_positive_code(by_code, settings)
    joined, counts = candidates.take()
    if not joined:
        texts = tally.counts["texts"]
        raise DataError(
            f"no words remain for the vocabulary, because each of the input's {plural(texts, 'text')} has only "
            "stopwords or is in the test set; give more input, or use fewer stopwords with --stopwords"
        )
    return VocabularyChoice(positive_from=positive_from, joined=joined, counts=counts)


def write_choice(choice: VocabularyChoice, address: str) -> None:
    write_text(address, orjson.dumps(asdict(choice)).decode())
