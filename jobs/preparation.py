"""Prepares the work before the first job, for every launcher: inspects and checks the input, and names and plans the
work.

A launcher must not do any of this itself. Otherwise the same work could have two names, or different work could have
the same name.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from math import ceil, log2
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from corpus.dataset_settings import Settings
from corpus.reading.acceptance import DEFAULT_MAX_MALFORMED, label_notes
from corpus.reading.inputs.inspection import InputInspection, inspect_inputs
from corpus.reading.ranges import cut_into_tasks, task_line
from corpus.reading.s3 import is_s3
from corpus.reading.sources import Inputs, Source
from corpus.reading.storage import join, write_text
from corpus.text import STOPWORD_LISTS
from jobs.job_settings import read_stopwords
from jobs.plan import MAX_PART_BITS, Plan, code_digest

if TYPE_CHECKING:
    from jobs.merge import MergeResult

RATE, RATE_OF_WHOLE_TEXTS = 95.0, 65.0
"""Throughput after the start, in MB of decompressed input per second and core: for fixed rows, and for ragged rows.

Measured on an AMD EPYC (Zen 5): docs/benchmarks.md has fixed rows. 1 GB takes 15.3 CPU-seconds with ragged rows.
"""
START_SECONDS = 2.0
"""Seconds that the smallest input takes, mostly to import libraries. Measured: 1.8 CPU-seconds."""
PROCESS_BYTES, THREAD_BYTES, WORD_BYTES = 300 << 20, 64 << 20, 200
"""Peak memory for input of any size: in all, for each thread, and for each word of the vocabulary.

Measured with 2 GB on two threads: 377 MB with 700,000 words.
"""
_PART_BYTES = 128 << 20
_MIN_PART_BITS = 3
_CONNECTIONS = 16
WORK_PER_INPUT, WORK_OF_WHOLE_TEXTS = 1.7, 3.0
"""Peak bytes of intermediate files on disk per byte of decompressed input: for fixed rows, and for ragged rows.

Measured with fixed rows: 0.97 for generated reviews, and 1.64 for short texts of few words, where the overhead per text
dominates. Measured with ragged rows: 1.8 for generated reviews, and 2.1 for film reviews, which is about 12 bytes per
word.
"""


@dataclass(frozen=True, kw_only=True)
class PreparedWork:
    """Checked input and complete settings, from which `plan` creates the steps of the work."""

    sources: tuple[Source, ...]
    """Input files, at the addresses where the jobs read them."""
    settings: Settings
    """Settings, including the values that depend on the input. A path to a file of stopwords is absolute."""
    stopwords: frozenset[str]
    max_malformed: float
    plain_bytes: int
    """Approximate decompressed size of the input."""
    warnings: tuple[str, ...] = ()
    """Warnings about the input, for the user."""

    @property
    def name(self) -> str:
        return fingerprint(self.sources, self.settings, self.stopwords)

    def with_warnings(self, result: "MergeResult") -> "MergeResult":
        """Return the result of this work with the warnings about the input and about its labels."""
        labels = label_notes(result.counts.get("other_labels", {}), self.settings)
        return replace(result, warnings=[*self.warnings, *labels])

    def plan(self, *, work: str, output: str) -> Plan:
        parts = ceil(log2(max(1, self.plain_bytes / _PART_BYTES)))
        return Plan(
            work=work,
            output=output,
            settings=self.settings,
            stopwords=tuple(sorted(self.stopwords)),
            max_malformed=self.max_malformed,
            part_bits=min(MAX_PART_BITS, max(_MIN_PART_BITS, parts)),
            code=code_digest(),
        )

    def write_plan(self, *, work: str, output: str, tasks: int) -> Plan:
        """Write the plan of the work and the tasks of its first step to the folder `work`.

        The first step has `tasks` tasks, or more for a large input.
        """
        plan = self.plan(work=work, output=output)
        if not is_s3(work):
            for folder in (plan.tasks, plan.texts, plan.parts):
                Path(folder).mkdir()
        with ThreadPoolExecutor(_CONNECTIONS, "write") as threads:
            for number, ranges in enumerate(cut_into_tasks(self.sources, tasks)):
                content = f"{task_line(ranges).decode()}\n"
                threads.submit(write_text, join(plan.tasks, f"{number:05d}"), content)
        plan.write()
        return plan


def prepare_work(
    inputs: Inputs,
    settings: Settings,
    *,
    max_malformed: float = DEFAULT_MAX_MALFORMED,
    leave_out: str | None = None,
    transfer: Callable[[tuple[Source, ...]], tuple[Source, ...]] = lambda sources: sources,
) -> PreparedWork:
    """Inspect the input, reject unusable input, and call `transfer`. `transfer` copies files to where jobs can read
    them, and returns the copies.

    Files below `leave_out`, the folder of the results, are skipped. Raises DataError for unusable input, settings or
    stopwords.
    """
    inspection = inspect_inputs(inputs, leave_out=leave_out)
    settings = inspection.settings(settings)
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
        warnings=inspection.warnings,
    )


def fingerprint(sources: Sequence[Source], settings: Settings, stopwords: frozenset[str]) -> str:
    """Return a name of 12 hexadecimal digits for this work. It depends on the files in their current state, the
    settings and the code of the jobs.

    The name does not depend on the limit on malformed lines, because the limit only decides whether the work continues.
    """
    read = [[each.address, each.size, each.identity, each.test, each.code, asdict(each.format)] for each in sources]
    content = orjson.dumps([read, {**asdict(settings), "stopwords": sorted(stopwords)}])
    return blake2b(content + code_digest().encode(), digest_size=6).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Approximate time, memory and disk space of the work."""

    seconds: float
    memory_bytes: int
    disk_bytes: int


def work_bytes(plain_bytes: int, settings: Settings) -> int:
    """Return the approximate disk space, in bytes, of the work for `plain_bytes` bytes of decompressed input."""
    rows = WORK_OF_WHOLE_TEXTS if settings.ragged else WORK_PER_INPUT
    return int(plain_bytes * rows)


def estimate_work(inspection: InputInspection, settings: Settings, cores: int) -> Estimate:
    """Return the estimate for a machine with `cores` cores."""
    rate = RATE_OF_WHOLE_TEXTS if settings.ragged else RATE
    return Estimate(
        seconds=START_SECONDS + inspection.plain_bytes / (rate * 1e6 * cores),
        memory_bytes=PROCESS_BYTES + THREAD_BYTES * cores + WORD_BYTES * settings.vocabulary_size,
        disk_bytes=work_bytes(inspection.plain_bytes, settings),
    )
