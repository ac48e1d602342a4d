"""The jobs in order, as data: what to run, on what, to where. `pipeline` runs them here, the launcher on a cluster.

The easy mistake is to let each runner assemble its own arguments; then runners drift apart. Here they are
said once, and a runner only decides how input, output and files reach a task.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, log2
from pathlib import PurePath

from corpus.settings import Settings
from jobs.choose import DEFAULT_MAX_MALFORMED
from jobs.encode import MAX_PART_BITS
from jobs.settings import settings_arguments
from jobs.storage import join

# A text packs to about a quarter.
_EXPANSION = {".gz": 4, ".bz2": 5}
_PART_BYTES = 256 << 20
_MIN_PART_BITS = 3


def plain_size(name: str, size: int) -> int:
    """About how many bytes a file of this name and size holds when it is unpacked."""
    return size * _EXPANSION.get(PurePath(name).suffix, 1)


@dataclass(frozen=True, kw_only=True)
class JobStep:
    """A MapReduce job: an MRJob in a module of its own."""

    name: str
    module: str
    job: str
    """The class of the job in its module."""
    inputs: tuple[str, ...]
    output: str
    arguments: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """Options whose value is a file that every task needs beside it."""


@dataclass(frozen=True, kw_only=True)
class CommandStep:
    """A program of one process, on the machine that leads: the primary node, or this one."""

    name: str
    module: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What one preprocessing is made of."""

    inputs: tuple[str, ...]
    """Addresses of the raw files, or of what stands for them."""
    work: str
    """The folder of everything that passes between the jobs; worthless afterwards."""
    output: str
    """The folder of the dataset."""
    settings: Settings = field(default_factory=Settings)
    max_malformed: float = DEFAULT_MAX_MALFORMED
    input_bytes: int
    """Size of the raw input, unpacked; it decides how many parts there are."""

    @property
    def part_bits(self) -> int:
        """The parts are 2 to the power of this: so many that the memory of a reducer does not grow with the input."""
        return min(MAX_PART_BITS, max(_MIN_PART_BITS, ceil(log2(max(1, self.input_bytes / _PART_BYTES)))))

    @property
    def summary(self) -> str:
        """Where the last step says what was made; `merge.read_merged` reads it."""
        return join(self.work, "merged.json")

    def steps(self) -> list[JobStep | CommandStep]:
        """The steps in order; each needs the whole output of those before."""
        distinct, words, encoded, parts = (join(self.work, name) for name in ("distinct", "words", "encoded", "parts"))
        vocabulary = join(self.work, "vocabulary.txt")
        arguments = tuple(settings_arguments(self.settings))
        stopwords, stopword_files = self._stopwords()
        return [
            JobStep(
                name="deduplicate",
                module="jobs.deduplicate",
                job="Deduplicate",
                inputs=self.inputs,
                output=distinct,
                arguments=arguments,
            ),
            JobStep(
                name="count words",
                module="jobs.vocabulary",
                job="CountWords",
                inputs=(distinct,),
                output=words,
                arguments=(*arguments, *stopwords),
                files=stopword_files,
            ),
            CommandStep(
                name="choose vocabulary",
                module="jobs.choose",
                arguments=(
                    f"--words={words}",
                    f"--output={vocabulary}",
                    f"--max-malformed={self.max_malformed}",
                    *arguments,
                ),
            ),
            JobStep(
                name="encode",
                module="jobs.encode",
                job="Encode",
                inputs=(distinct,),
                output=encoded,
                arguments=(*arguments, *stopwords, f"--parts={parts}", f"--part-bits={self.part_bits}"),
                files={"--vocabulary": vocabulary, **stopword_files},
            ),
            CommandStep(
                name="merge",
                module="jobs.merge",
                arguments=(
                    f"--parts={parts}",
                    f"--encoded={encoded}",
                    f"--output={self.output}",
                    f"--summary={self.summary}",
                ),
            ),
        ]

    def _stopwords(self) -> tuple[tuple[str, ...], dict[str, str]]:
        """The choice of stopwords as an argument, or as a file that travels."""
        if self.settings.stopwords in ("nltk", "none"):
            return (f"--stopwords={self.settings.stopwords}",), {}
        return (), {"--stopwords": self.settings.stopwords}
