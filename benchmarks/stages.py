"""Where preprocessing spends its time: nanoseconds a word and percent, by stage, of the jobs without a runner.

    python -m benchmarks.stages [FILE]

A stage's time is its own, without that of the stages that it calls. The clock is read twice a call, so only functions
that work on a block of texts or more are stages; the rest is `other`.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tabulate import tabulate

import corpus.tokenise
from benchmarks.generated import write_reviews
from benchmarks.peers import bare

_BYTES = 200_000_000
STAGES = {
    "read and parse lines": ["jobs.deduplicate:read_batches"],
    "join texts, entities, not ASCII": ["corpus.tokenise:_join_as_ascii"],
    "find words": ["corpus.tokenise:find_runs", "corpus.tokenise:strip_apostrophes"],
    "look up words": ["corpus.dictionary:look_up_words"],
    "rest of the tokeniser": ["corpus.tokenise:Tokeniser.__call__", "corpus.dictionary:Dictionary.add"],
    "digest": ["jobs.collector:Collector.add"],
    "deduplicate and cut to blocks": ["jobs.collector:Collector.blocks"],
    "gather ids": ["jobs.collector:gather", "jobs.part_reducer:gather"],
    "renumber ids": ["jobs.collector:renumber", "jobs.part_reducer:renumber"],
    "letters of words": ["corpus.dictionary:Dictionary.join_words"],
    "pack": ["jobs.collector:pack_arrays", "jobs.deduplicate:pack_arrays", "jobs.part_reducer:unpack_arrays"],
    "base64": ["jobs.collector:b64encode", "jobs.deduplicate:b64encode", "jobs.part_reducer:b64decode"],
    "take blocks": ["jobs.part_reducer:PartReducer.add"],
    "unite a part": ["jobs.part_reducer:PartReducer.unite"],
    "modal ratings": ["jobs.part_reducer:modal_ratings"],
    "rows of a part": ["jobs.part_reducer:PartReducer._rows"],
    "word counts of a part": ["jobs.part_reducer:PartReducer._frequencies", "jobs.deduplicate:_word_counts"],
    "count words": ["jobs.vocabulary:CountWords.reducer"],
    "choose vocabulary": ["jobs.choose:run"],
    "encode": ["jobs.encode:Encode.mapper"],
    "merge": ["jobs.merge:run"],
    "detect the format": ["jobs.preparation:understand_inputs"],
}

_FIND_RUNS = corpus.tokenise.find_runs


class _Clock:
    """CPU time by stage, each without the stages inside it."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self.words = 0
        self._inside: list[str] = ["other"]
        self._since = time.process_time_ns()

    def enter(self, stage: str) -> None:
        self._turn()
        self._inside.append(stage)

    def leave(self) -> None:
        self._turn()
        self._inside.pop()

    def _turn(self) -> None:
        now = time.process_time_ns()
        self.spent[self._inside[-1]] += now - self._since
        self._since = now

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time, and that of the generator it may return, counted for the stage."""

        def call(*args: Any, **options: Any) -> Any:
            self.enter(stage)
            try:
                made = function(*args, **options)
            finally:
                self.leave()
            if function is _FIND_RUNS:
                self.words += made
            return self._followed(stage, made) if isinstance(made, Iterator) else made

        return call

    def _followed(self, stage: str, values: Iterator[Any]) -> Iterator[Any]:
        while True:
            self.enter(stage)
            try:
                value = next(values)
            except StopIteration:
                return
            finally:
                self.leave()
            yield value


def profile(path: Path) -> _Clock:
    """Preprocess a file twice: to compile and warm up, and to measure."""
    with TemporaryDirectory() as folder:
        bare.preprocess(path, Path(folder))
    clock = _Clock()
    for stage, places in STAGES.items():
        for place in places:
            module, _, name = place.partition(":")
            *owners, last = name.split(".")
            owner = import_module(module)
            for each in owners:
                owner = getattr(owner, each)
            setattr(owner, last, clock.timed(stage, getattr(owner, last)))
    with TemporaryDirectory() as folder:
        clock.enter("other")
        bare.preprocess(path, Path(folder))
        clock.leave()
    return clock


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stages", description=__doc__.partition("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, help="JSON lines; without it, 200 MB are generated")
    args = parser.parse_args()
    with TemporaryDirectory() as folder:
        path = args.file or Path(folder) / "generated.json"
        if not args.file:
            write_reviews(path, _BYTES)
        clock = profile(path)
        megabytes = path.stat().st_size / 1e6
    total = sum(clock.spent.values())
    rows = [
        [stage, f"{spent / clock.words:.2f}", f"{100 * spent / total:.1f}", f"{megabytes / (spent / 1e9):,.0f}"]
        for stage, spent in clock.spent.most_common()
    ]
    rows.append(["all", f"{total / clock.words:.2f}", "100", f"{megabytes / (total / 1e9):.1f}"])
    sys.stdout.write(f"{megabytes:.0f} MB, {clock.words / 1e6:.1f} million words\n\n")
    headers = ["stage", "ns a word", "%", "MB a CPU-second"]
    sys.stdout.write(tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True) + "\n")


if __name__ == "__main__":
    main()
