"""Describes the steps of preprocessing in order, as data: module, input, output and arguments of each step.

`pipeline` runs the steps on this machine, and a launcher runs them on a cluster. Neither may add arguments: both only
decide how input, output and files reach a task. `jobs.preparation` creates the plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, log2

import orjson

from corpus.dataset_settings import Settings
from corpus.reading.acceptance import DEFAULT_MAX_MALFORMED
from corpus.reading.storage import join
from corpus.text import STOPWORD_LISTS
from jobs.job_settings import settings_argument
from jobs.records import part_name

_PART_BYTES = 128 << 20
_MIN_PART_BITS, _MAX_PART_BITS = 3, 16


SUMMARY = "merged.json"
"""Name of the file with the result of the last step."""


@dataclass(frozen=True, kw_only=True)
class JobStep:
    """Step that is a MapReduce job: an MRJob class in its own module."""

    name: str
    module: str
    job: str
    """Name of the MRJob class in `module`."""
    inputs: tuple[str, ...]
    """Folders with the input files of the job. Each file is a task, or contains records of an earlier job."""
    reads: str | None
    """Folder from which the tasks read side files. If None, the tasks read the raw input."""
    output: str
    arguments: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """Address of each file that every task needs, by the name of the option."""
    reduces: bool = True
    """Whether the job has a reducer."""

    @property
    def done_file(self) -> str:
        return join(self.output, "_SUCCESS")


@dataclass(frozen=True, kw_only=True)
class CommandStep:
    """Step that is a single process, on the primary node of a cluster or on this machine."""

    name: str
    module: str
    arguments: tuple[str, ...]
    done_file: str
    """Address of a file that exists once the step is done."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Plan of one preprocessing run: its tasks, folders, settings and steps."""

    tasks: Sequence[bytes]
    """Tasks of the first job, as lines that `corpus.reading.ranges.task_line` wrote."""
    work: str
    """Folder for the intermediate files of the jobs. It is not needed afterwards."""
    output: str
    """Folder for the dataset."""
    settings: Settings = field(default_factory=Settings)
    max_malformed: float = DEFAULT_MAX_MALFORMED
    input_bytes: int
    """Decompressed size of the raw input, in bytes. It determines the number of parts."""

    @property
    def part_bits(self) -> int:
        """Binary logarithm of the number of parts. The number of parts grows with the input, so that a reducer's memory
        does not grow."""
        return min(_MAX_PART_BITS, max(_MIN_PART_BITS, ceil(log2(max(1, self.input_bytes / _PART_BYTES)))))

    @property
    def summary(self) -> str:
        """Address of the result of the last step. `merge.read_merge_result` reads it."""
        return join(self.work, SUMMARY)

    @property
    def side_folders(self) -> tuple[str, str]:
        """Folders for the files that tasks write in addition to their records."""
        return join(self.work, "distinct"), join(self.work, "parts")

    def task_files(self) -> dict[str, bytes]:
        """Return the files to write before the first step, one for each task: address to content.

        Every runner creates one map task for a small file, so that no custom input format is needed.
        """
        parts = [part_name(number) for number in range(1 << self.part_bits)]
        tasks = min(len(parts), len(self.tasks))
        groups = [parts[number * len(parts) // tasks : (number + 1) * len(parts) // tasks] for number in range(tasks)]
        return {
            **self._files(self._to_read, self.tasks),
            **self._files(self._to_encode, [orjson.dumps(group) for group in groups]),
        }

    def steps(self) -> list[JobStep | CommandStep]:
        """Return the steps in order. Each step needs the complete output of the previous steps."""
        distinct, parts = self.side_folders
        counted, words, encoded = (join(self.work, name) for name in ("counted", "words", "encoded"))
        choice = join(self.work, "choice.json")
        arguments = (settings_argument(self.settings),)
        own = {} if self.settings.stopwords in STOPWORD_LISTS else {"--stopwords": self.settings.stopwords}
        return [
            JobStep(
                name="deduplicate",
                module="jobs.deduplicate",
                job="Deduplicate",
                inputs=(self._to_read,),
                reads=None,
                output=counted,
                arguments=(*arguments, f"--distinct={distinct}", f"--part-bits={self.part_bits}"),
                files=own,
            ),
            JobStep(
                name="count words",
                module="jobs.vocabulary",
                job="CountWords",
                inputs=(counted,),
                reads=counted,
                output=words,
                arguments=arguments,
            ),
            CommandStep(
                name="choose vocabulary",
                module="jobs.choose",
                arguments=(
                    f"--counts={words}",
                    f"--output={choice}",
                    f"--max-malformed={self.max_malformed}",
                    *arguments,
                ),
                done_file=choice,
            ),
            JobStep(
                name="encode",
                module="jobs.encode",
                job="Encode",
                inputs=(self._to_encode,),
                reads=distinct,
                output=encoded,
                arguments=(*arguments, f"--distinct={distinct}", f"--parts={parts}"),
                files={"--choice": choice, **own},
                reduces=False,
            ),
            CommandStep(
                name="merge",
                module="jobs.merge",
                arguments=(
                    f"--parts={parts}",
                    *("--records", words, encoded),
                    f"--choice={choice}",
                    f"--output={self.output}",
                    f"--summary={self.summary}",
                ),
                done_file=self.summary,
            ),
        ]

    @property
    def _to_read(self) -> str:
        return join(self.work, "to-read")

    @property
    def _to_encode(self) -> str:
        return join(self.work, "to-encode")

    @staticmethod
    def _files(folder: str, tasks: Sequence[bytes]) -> dict[str, bytes]:
        return {join(folder, f"{number:05d}"): task + b"\n" for number, task in enumerate(tasks)}
