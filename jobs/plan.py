"""Plan of one preprocessing: what each of its tasks must know, and the folder in which tasks exchange files.

The plan is a file in that folder. Tasks find the folder by an environment variable, which all runners of mrjob set.
"""

from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Self

import orjson

import corpus
from common.checked_values import within
from common.errors import DataError
from common.files import DOCUMENT_BYTES, read_regular
from common.json_values import from_json, parse_json_object
from corpus.dataset_settings import Settings
from corpus.reading.storage import join, readable, write_text

PLAN_NAME = "shoal-plan.json"
RESULT = "result/part-00000"
"""Output of the last step, in the folder of the plan. Every runner gives its first file this name."""
FAILURE_NAME = "failure.txt"
WORK_VARIABLE = "SHOAL_WORK"
"""Environment variable of a task: the address of the folder with the plan."""
MAX_PART_BITS = 16


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Plan of one preprocessing."""

    work: str
    """Folder, or s3://..., for the plan and for the files that tasks exchange. It is not needed afterwards."""
    output: str
    """Folder, or s3://..., for the dataset."""
    settings: Settings
    stopwords: tuple[str, ...]
    """Words to remove, sorted."""
    max_malformed: float
    part_bits: Annotated[int, within(0, MAX_PART_BITS)]
    """Binary logarithm of the number of parts. A part has the texts with one prefix of their digests."""
    code: str
    """`code_digest` of the program that wrote the plan."""

    @property
    def tasks(self) -> str:
        """Folder with a file for each task of the first step."""
        return join(self.work, "tasks")

    @property
    def texts(self) -> str:
        """Folder for the distinct texts of each part."""
        return join(self.work, "texts")

    @property
    def parts(self) -> str:
        """Folder for the encoded rows of each part."""
        return join(self.work, "parts")

    @property
    def choice(self) -> str:
        """File with the vocabulary."""
        return join(self.work, "choice.json")

    @property
    def tally(self) -> str:
        """File with the tally of the steps before the vocabulary was chosen."""
        return join(self.work, "tally")

    @property
    def failure(self) -> str:
        """File to which a task writes why it cannot use its data. No runner delivers a task's messages reliably."""
        return join(self.work, FAILURE_NAME)

    @property
    def summary(self) -> str:
        """Output of the last step, which `merge.read_merge_result` reads, if the plan's owner asked for it here."""
        return join(self.work, RESULT)

    @property
    def result(self) -> str:
        """Folder of `summary`."""
        return self.summary.rpartition("/")[0]

    def write(self) -> None:
        write_text(join(self.work, PLAN_NAME), orjson.dumps(asdict(self)).decode())

    @classmethod
    def read(cls, work: str) -> Self:
        """Read the plan in a folder.

        Raises DataError if it has other content, names another work folder, or is from other code than this. Tasks can
        write to the folder, so the plan must not send its reader elsewhere.
        """
        address = join(work, PLAN_NAME)
        with readable(address, DOCUMENT_BYTES) as path:
            content = read_regular(path, DOCUMENT_BYTES)
        try:
            plan = from_json(cls, parse_json_object(content))
        except (AttributeError, DataError, TypeError, ValueError) as error:
            raise DataError(f"{address} is not a plan of preprocessing: {error}") from error
        if plan.work.rstrip("/") != work.rstrip("/"):
            raise DataError(f"{address} is the plan of another folder, {plan.work}; start the preprocessing again")
        if plan.code != code_digest():
            raise DataError(
                f"{address} is from another version of Shoal than this machine has; deploy again, or run the version "
                "that was deployed"
            )
        return plan


@cache
def code_digest() -> str:
    """Return the digest of the code of the jobs, so that one version does not continue the work of another."""
    folders = [*map(Path, corpus.__path__), Path(__file__).parent]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    return blake2b(b"".join(path.read_bytes() for path in sorted(files)), digest_size=16).hexdigest()
