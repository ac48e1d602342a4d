"""The vocabulary, chosen from the reducers' candidates; and the point where bad input ends the work.

    python -m jobs.choose --words FOLDER --output FILE [--max-malformed SHARE] [the settings]

It is the first moment at which all lines have been counted, and everything dear comes after it: an input
that is mostly not reviews is refused here, with its counts by reason.
"""

from argparse import ArgumentParser, ArgumentTypeError
from collections import Counter
from collections.abc import Sequence

from corpus.errors import DataError
from corpus.settings import Settings
from corpus.text import most_frequent
from jobs.records import COUNTS_KEY, read_records, sum_counts
from jobs.settings import add_settings, read_settings
from jobs.storage import list_files, open_lines, write_text
from jobs.task import run_as_command

DEFAULT_MAX_MALFORMED = 0.05


def choose_vocabulary(words: str, output: str, settings: Settings, max_malformed: float) -> list[str]:
    """Write the most frequent words of the folder `words`, a line each and in order, to `output`.

    Raises DataError when the input has no lines, no texts, or a larger share of malformed lines than
    `max_malformed`; nothing is written then.
    """
    candidates, counts = _read_candidates(words)
    _check_input(counts, max_malformed)
    vocabulary = most_frequent(candidates, settings.vocabulary_size)
    if not vocabulary:
        raise DataError(
            f"no words are left for the vocabulary: {counts['texts']} texts hold only stopwords, or are all in the "
            "test set; give more input, or fewer stopwords by --stopwords"
        )
    write_text(output, "".join(f"{word}\n" for word in vocabulary))
    return vocabulary


def _read_candidates(folder: str) -> tuple[list[tuple[str, int]], Counter[str]]:
    candidates: list[tuple[str, int]] = []
    counts: Counter[str] = Counter()
    for part in list_files(folder):
        for key, value in read_records(open_lines(part)):
            if key == COUNTS_KEY:
                counts.update(sum_counts([value]))
            else:
                candidates.append((key.decode(), int(value)))
    return candidates, counts


def _check_input(counts: Counter[str], max_malformed: float) -> None:
    lines, malformed = counts["lines"], counts["malformed"]
    if not lines:
        raise DataError("the input has no lines; give files of reviews, one JSON object a line")
    if malformed > max_malformed * lines:
        reasons = sorted(name for name in counts if name.startswith("malformed_by_reason."))
        listed = ", ".join(f"{counts[name]} {name.partition('.')[2]}" for name in reasons)
        raise DataError(
            f"{malformed} of {lines} lines are malformed ({listed}), more than {max_malformed:.0%}; are these review "
            "files, one JSON object a line with reviewText and overall? If so, raise --max-malformed"
        )
    if not counts["texts"]:
        raise DataError(f"none of the {lines} lines holds a text with a word; there is nothing to learn from")


def run(arguments: Sequence[str]) -> list[str]:
    """Choose as the arguments of a step say."""
    parser = ArgumentParser(prog="jobs.choose", description="Choose the vocabulary from what jobs.vocabulary left.")
    parser.add_argument("--words", required=True, metavar="FOLDER", help="the output of jobs.vocabulary")
    parser.add_argument("--output", required=True, metavar="FILE", help="where the words go, a line each")
    add_max_malformed(parser)
    add_settings(parser.add_argument)
    options = parser.parse_args(arguments)
    return choose_vocabulary(options.words, options.output, read_settings(options), options.max_malformed)


def _share(text: str) -> float:
    if not 0 <= (share := float(text)) <= 1:
        raise ArgumentTypeError(f"{text} is no share from 0 to 1")
    return share


def add_max_malformed(parser: ArgumentParser) -> None:
    """Declare the option that says how much bad input is too much."""
    parser.add_argument(
        "--max-malformed",
        type=_share,
        default=DEFAULT_MAX_MALFORMED,
        metavar="SHARE",
        help="share of malformed lines above which the work ends (%(default)s)",
    )


if __name__ == "__main__":
    run_as_command(lambda arguments: f"{len(run(arguments))} words")
