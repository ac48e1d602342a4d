"""Prepares the work for every launcher, before the first job: inspects and checks the input, names and plans the work.

A launcher must not do any of this itself, because the same work could then have two names, or one name stand for two
kinds of work.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from hashlib import blake2b
from pathlib import Path

import orjson

import corpus
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.acceptance import DEFAULT_MAX_MALFORMED
from corpus.reading.inputs.inspection import InputInspection, inspect_inputs
from corpus.reading.ranges import cut_into_tasks, task_line
from corpus.reading.s3 import is_s3
from corpus.reading.sources import Inputs, Source
from corpus.text import STOPWORD_LISTS
from jobs.job_settings import read_stopwords
from jobs.steps import Plan

RATE, RATE_OF_WHOLE_TEXTS = 60.0, 35.0
"""MB of plain input a second and core, besides the start, with fixed and with ragged rows. 1 GB on two cores: 16 s; 9
to 15 by docs/benchmarks.md. With ragged rows of all words the jobs took 1.8 times the CPU time."""
START_SECONDS = 8.0
"""Seconds that the jobs take for the smallest input."""
PROCESS_BYTES = 300 << 20
"""Memory of a task, whatever the size of the input, besides its vocabulary."""
WORD_BYTES = 200
"""Memory of a task for each word of the vocabulary."""
MAX_CLASSES = 1 << 8
"""The most classes of which the jobs make a dataset: between them the code of a label is a byte."""
WORK_PER_INPUT, WORK_OF_WHOLE_TEXTS = 1.7, 3.0
"""What passes between the jobs and is on disk at once, in bytes a byte of plain input: with fixed and with ragged rows.

Of generated reviews it was 0.97, of short texts of few words 1.64: what a text takes besides its words weighs there.
With ragged rows it was 1.8 of generated and 2.1 of film reviews: about 12 bytes a word.
"""


@dataclass(frozen=True, kw_only=True)
class PreparedWork:
    """Work that is ready to be planned for a folder."""

    sources: tuple[Source, ...]
    """The files, where the jobs read them."""
    settings: Settings
    """With the values that depend on the input; a file of stopwords has its absolute path."""
    stopwords: frozenset[str]
    max_malformed: float
    plain_bytes: int
    """The approximate size of the input, decompressed."""
    warnings: tuple[str, ...] = ()
    """What its user should know of it."""

    @property
    def name(self) -> str:
        return fingerprint(self.sources, self.settings, self.stopwords)

    def with_stopwords_at(self, folder: str) -> "tuple[PreparedWork, dict[str, bytes]]":
        """The same work with the user's stopwords in a file of a folder; and the content to write there, by address."""
        if self.settings.stopwords in STOPWORD_LISTS:
            return self, {}
        address = f"{folder}stopwords.txt"
        moved = replace(self, settings=replace(self.settings, stopwords=address))
        return moved, {address: "\n".join(sorted(self.stopwords)).encode()}

    def plan(self, *, work: str, output: str, tasks: int) -> Plan:
        """The plan of the work in the folder `work`, with `tasks` tasks, or more for much input."""
        return Plan(
            tasks=[task_line(ranges) for ranges in cut_into_tasks(self.sources, tasks)],
            work=work,
            output=output,
            settings=self.settings,
            max_malformed=self.max_malformed,
            input_bytes=self.plain_bytes,
        )


def prepare_work(
    inputs: Inputs,
    settings: Settings,
    *,
    max_malformed: float = DEFAULT_MAX_MALFORMED,
    leave_out: str | None = None,
    transfer: Callable[[tuple[Source, ...]], tuple[Source, ...]] = lambda sources: sources,
) -> PreparedWork:
    """Inspect the input, refuse what cannot be used, and call `transfer`, which copies files to where jobs read them.

    Files below `leave_out`, the folder of the results, are skipped. Raises DataError for input, settings
    or stopwords that cannot be used.
    """
    inspection = inspect_inputs(inputs, leave_out=leave_out)
    settings = settle(inspection, settings)
    inspection.check_values(settings, max_malformed)
    sources = transfer(inspection.sources)
    stopwords = read_stopwords(settings.stopwords, settings.words)
    if settings.stopwords not in STOPWORD_LISTS and not is_s3(settings.stopwords):
        settings = replace(settings, stopwords=str(Path(settings.stopwords).resolve()))
    return PreparedWork(
        sources=sources,
        settings=settings,
        stopwords=stopwords,
        max_malformed=max_malformed,
        plain_bytes=inspection.plain_bytes,
        warnings=inspection.warnings_for(settings.words),
    )


def settle(inspection: InputInspection, chosen: Settings) -> Settings:
    """The settings with what the input determines of them.

    Raises DataError where the two contradict each other, and for more than MAX_CLASSES.
    """
    settings = inspection.settings(chosen)
    if len(settings.classes) > MAX_CLASSES:
        raise DataError(
            f"--classes names {len(settings.classes):,} classes, but preprocessing takes at most {MAX_CLASSES}; "
            "give the most frequent ones, and leave out the texts of all others by a higher --max-malformed"
        )
    return settings


def fingerprint(sources: Sequence[Source], settings: Settings, stopwords: frozenset[str]) -> str:
    """A name, 12 hexadecimal digits, for the work on these files, as they are now, with these settings and this code.

    The limit for malformed input is not part of it: it decides only whether the work continues.
    """
    read = [[each.address, each.size, each.identity, each.test, each.code, asdict(each.format)] for each in sources]
    content = orjson.dumps([read, {**asdict(settings), "stopwords": sorted(stopwords)}])
    return blake2b(content + _code(), digest_size=6).hexdigest()


@cache
def _code() -> bytes:
    """The digest of the code of the jobs: work of another version is not continued."""
    folders = [*map(Path, corpus.__path__), Path(__file__).parent]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    return blake2b(b"".join(path.read_bytes() for path in sorted(files)), digest_size=16).digest()


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The approximate time, memory and disk space of the work."""

    seconds: float
    memory_bytes: int
    disk_bytes: int


def work_bytes(plain_bytes: int, settings: Settings) -> int:
    """The approximate disk space that the work takes for so many bytes of plain input."""
    rows = WORK_OF_WHOLE_TEXTS if settings.ragged else WORK_PER_INPUT
    return int(plain_bytes * rows)


def estimate_work(inspection: InputInspection, settings: Settings, cores: int) -> Estimate:
    """The estimate for so many cores, of this machine or of all workers of a cluster."""
    rate = RATE_OF_WHOLE_TEXTS if settings.ragged else RATE
    return Estimate(
        seconds=START_SECONDS + inspection.plain_bytes / (rate * 1e6 * cores),
        memory_bytes=(PROCESS_BYTES + WORD_BYTES * settings.vocabulary_size) * cores,
        disk_bytes=work_bytes(inspection.plain_bytes, settings),
    )
