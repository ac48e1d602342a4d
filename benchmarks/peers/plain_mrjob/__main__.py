"""The three jobs in order: `python -m benchmarks.peers.plain_mrjob INPUT OUTPUT`."""

import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from mrjob.job import MRJob

from benchmarks.peers.outcome import write_counts
from benchmarks.peers.plain_mrjob.distinct import Distinct
from benchmarks.peers.plain_mrjob.rows import Rows
from benchmarks.peers.plain_mrjob.word_counts import WordCounts
from corpus.dataset_settings import Settings
from corpus.rules import most_frequent


def _run(job: type[MRJob], inputs: list[Path], output: Path, *options: str) -> dict[str, int]:
    made = job(
        [
            "--runner=local",
            "--no-conf",
            "--no-bootstrap-mrjob",
            f"--local-tmp-dir={output.parent}",
            f"--output-dir={output}",
            *options,
            *map(str, inputs),
        ]
    )
    with made.make_runner() as runner:
        runner.run()
        counts: Counter[str] = Counter()
        for step in runner.counters():
            counts.update(step.get("counts", {}))
        return dict(counts)


def preprocess(source: Path, output: Path) -> None:
    """A raw file to `output`."""
    with TemporaryDirectory(dir=output) as name:
        work = Path(name)
        counts = _run(Distinct, [source], work / "distinct")
        _run(WordCounts, [work / "distinct"], work / "words")
        frequencies = []
        for part in sorted((work / "words").glob("part-*")):
            for line in part.read_text().splitlines():
                word, _, number = line.partition("\t")
                frequencies.append((word, int(number)))
        vocabulary = [word for word, _ in most_frequent(frequencies, Settings().vocabulary_size)]
        write_counts(output, counts, vocabulary)
        _run(Rows, [work / "distinct"], work / "rows", f"--vocabulary={output / 'vocabulary.txt'}")
        with (output / "rows.txt").open("wb") as rows:
            for part in sorted((work / "rows").glob("part-*")):
                rows.write(part.read_bytes())


if __name__ == "__main__":
    preprocess(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
