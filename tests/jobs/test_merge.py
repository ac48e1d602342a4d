"""Part files become one dataset: exactly, in bounded memory, and never half-written."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import h5py
import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from common.errors import DataError
from corpus.dataset import DatasetWriter, RowBlock, open_dataset, write_dataset
from corpus.dataset_settings import Settings
from corpus.reading.tally import Tally
from jobs.choose import VocabularyChoice, write_choice
from jobs.merge import MergeResult, merge_parts, read_merge_result
from jobs.plan import PLAN_NAME, WORK_VARIABLE, Plan
from tests.corpus import test_dataset
from tests.corpus.test_dataset import joined
from tests.jobs.piles import plan_in
from tests.small_disk import NEEDS_A_SMALL_DISK, run_on_small_disk

SETTINGS = Settings(row_length=4, test_share=0.3)
WORDS = ["good", "bad", "lamp"]
CHOICE = VocabularyChoice(positive_from=4, joined=" ".join(WORDS), counts=[9, 5, 2])
ENTRY = [sys.executable, "-m", "jobs.dataset", "--step-num=4", "--reducer"]


def rows(count: int, seed: int) -> RowBlock:
    made = test_dataset.rows(np.random.default_rng(seed).integers(1, 5, count), seed=seed)
    return made._replace(labels=(made.ratings > 3).astype(np.uint8))


class Work:
    """Folder of a preprocessing before its merge, with parts of the given numbers of rows (training, test)."""

    def __init__(self, folder: Path, sizes: list[tuple[int, int]], packed: bool = False) -> None:
        self.folder = folder
        self.train = [rows(train, seed) for seed, (train, _) in enumerate(sizes)]
        self.test = [rows(test, seed + 1_000) for seed, (_, test) in enumerate(sizes)]
        for number, (train, test) in enumerate(zip(self.train, self.test, strict=True)):
            with DatasetWriter(self.part(number), SETTINGS, packed=packed) as writer:
                writer.append("train", train)
                writer.append("test", test)
                writer.finish(vocabulary=(), stopwords=frozenset({"of"}), counts={})
        read, encoded = Tally(), Tally()
        every = joined(self.train + self.test)
        codes, texts = np.bincount(every.ratings, minlength=6), len(every.labels)
        read.count_malformed("not_json", "reviews.json", 0, 3, b"{oops")
        for name in ("lines", "texts", "distinct"):
            read.counts[name] += texts
        for code in range(1, 6):
            read.counts.update({f"codes.{when}.{code}": int(codes[code]) for when in ("before", "after")})
        for bin_of, longest in ((1, 1), (2, 3), (4, 4)):
            read.counts[f"lengths.{bin_of}"] += int(((every.lengths >= bin_of) & (every.lengths <= longest)).sum())
        for split, parts in (("train", self.train), ("test", self.test)):
            read.counts[split] += sum(len(part.labels) for part in parts)
            encoded.counts[f"positive_{split}"] += sum(int(part.labels.sum()) for part in parts)
        encoded.counts["tokens"] += int(every.lengths.sum())
        encoded.counts["unknown_tokens"] += int((every.tokens == 1).sum())
        self.encoded = encoded.records()
        self.records = [*read.records(), *self.encoded]
        write_choice(CHOICE, str(folder / "choice.json"))
        (folder / "tally").write_bytes(b"".join(b"%s\t%s\n" % record for record in read.records()))

    def part(self, number: int) -> Path:
        return self.folder / "parts" / f"part-{number:04x}.h5"

    def plan(self, output: Path | str, folder: Path | str | None = None) -> Plan:
        return plan_in(folder or self.folder, output, settings=SETTINGS, stopwords=("of",))

    def merge(self, output: Path | str, folder: str | None = None) -> MergeResult:
        tally = Tally()
        for key, value in self.records:
            tally.add_records(key, [value])
        return merge_parts(self.plan(output, folder), tally, lambda _: None)

    def start(self, output: Path, *command: str, **how) -> "subprocess.Popen[bytes]":
        """Start the reducer of the last step, or another command with its input, in a process of its own."""
        plan = self.plan(output)
        plan.write()
        records = self.folder.with_name(f"{self.folder.name}.records")
        records.write_bytes(self.input())
        environment = {**os.environ, WORK_VARIABLE: plan.work}
        with records.open("rb") as stdin:
            return subprocess.Popen([*(command or ENTRY)], stdin=stdin, env=environment, **how)

    def input(self) -> bytes:
        """Return the input of the last step's reducer."""
        return b"".join(b"*\t%s\t%s\n" % record for record in self.encoded)

    def unfinished(self) -> list[Path]:
        return list(self.folder.glob("shoal-merging-*"))

    def digest(self) -> str:
        return write_dataset(
            self.folder / "whole.h5",
            train=joined(self.train),
            test=joined(self.test),
            vocabulary=WORDS,
            settings=SETTINGS,
            stopwords=frozenset({"of"}),
        )


def make(folder: Path) -> Work:
    (folder / "work").mkdir()
    return Work(folder / "work", [(300, 40), (0, 7), (900, 0), (5, 60)])


@pytest.fixture
def work(tmp_path):
    return make(tmp_path)


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("merged")
    return make(folder).merge(folder / "out")


SIZES = st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 500)), min_size=1, max_size=4)


@settings(max_examples=10, derandomize=True)
@given(SIZES.filter(lambda sizes: any(train for train, _ in sizes)), st.booleans())
@example([(90_000, 3), (60_000, 0), (0, 9)], False)  # more than one chunk of tokens
def test_merged_parts_equal_a_file_of_all_rows(tmp_path_factory, sizes, packed) -> None:
    work = Work(tmp_path_factory.mktemp("work"), sizes, packed)
    merged = work.merge(work.folder / "out")
    assert merged.digest == work.digest()
    with open_dataset(merged.dataset) as dataset, open_dataset(work.folder / "whole.h5") as whole:
        assert dataset.digest == dataset.computed_digest()
        assert (dataset.settings, dataset.vocabulary, dataset.stopwords) == (SETTINGS, WORDS, {"of"})
        assert dataset.train.arrays["tokens"].chunk_rows == whole.train.arrays["tokens"].chunk_rows
    shutil.rmtree(work.folder)


def test_a_merge_writes_the_dataset_counts_and_summary(merged, tmp_path) -> None:
    out = Path(merged.dataset).parent
    assert sorted(path.name for path in out.iterdir()) == ["counts.json", "dataset.h5"]
    (tmp_path / "part-00000").write_text(f"{json.dumps(asdict(merged))}\t\n")  # as Hadoop Streaming writes it
    assert read_merge_result(str(tmp_path / "part-00000")) == merged
    assert json.loads((out / "counts.json").read_text()) == merged.counts
    with open_dataset(merged.dataset) as dataset:
        assert dataset.counts == merged.counts
    assert compression(merged.dataset) is None
    assert (merged.counts["train"], merged.counts["test"], merged.counts["lines"]) == (1_205, 107, 1_313)
    assert merged.counts["frequent_words"] == [["good", 9], ["bad", 5], ["lamp", 2]]
    assert merged.malformed == [{"reason": "not_json", "file": "reviews.json", "line": 3, "begins": "{oops"}]


def compression(dataset: str | Path) -> str | None:
    with h5py.File(dataset) as file:
        return file["train/tokens"].compression


WRONG = {"dataset": 1, "digest": "../runs", "counts": {}, "malformed": [{"reason": "not_json"}], "other": 1}


@pytest.mark.parametrize("name", WRONG)
def test_an_invalid_summary_is_refused(merged, tmp_path, name, messages) -> None:
    summary = tmp_path / "merged.json"
    summary.write_text(json.dumps({**asdict(merged), name: WRONG[name]}))
    with messages.raises(DataError):
        read_merge_result(str(summary))


def lose_a_part(work: Work) -> None:
    work.part(2).unlink()


def double_a_tally(work: Work) -> None:
    work.records += work.encoded


HARMS = {
    "a lost part": lose_a_part,
    "no parts": lambda work: shutil.rmtree(work.folder / "parts"),
    "a cut part": lambda work: work.part(2).write_bytes(work.part(2).read_bytes()[:-1_000]),
    "a doubled tally": double_a_tally,
}


@pytest.mark.parametrize("harm", HARMS)
def test_inconsistent_parts_are_refused_without_output(work, tmp_path, harm, messages) -> None:
    HARMS[harm](work)
    before = set(work.folder.iterdir())
    with pytest.raises(DataError) as refusal:
        work.merge(tmp_path / "out")
    messages.hide(refusal.value.__cause__, "HDF5'S REASON")
    messages.check(refusal.value)
    assert not (tmp_path / "out").exists()
    assert set(work.folder.iterdir()) == before


def test_a_merge_without_training_rows_is_refused(tmp_path, messages) -> None:
    with messages.raises(DataError):
        Work(tmp_path, [(0, 9)]).merge(tmp_path / "out")


KILLED = """
import os, signal, sys
from corpus import writing
from jobs import merge
where, name, after = sys.argv[1].split(":")
owner = {"writer": writing.DatasetWriter, "merge": merge}[where]
original = getattr(owner, name)
left = [int(after)]
def fatal(*arguments, **named):
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    return original(*arguments, **named)
setattr(owner, name, fatal)
from jobs.dataset import MakeDataset
MakeDataset(["--step-num=4", "--reducer"]).execute()
"""


@pytest.mark.parametrize("place", ["writer:append:3", "writer:finish:0", "merge:writable:0", "merge:write_text:0"])
def test_a_killed_merge_leaves_nothing_and_the_next_one_works(work, tmp_path, place) -> None:
    output = tmp_path / "out"
    assert work.start(output, sys.executable, "-c", KILLED, place).wait() == -9
    assert not (output / "dataset.h5").exists()
    assert work.unfinished()
    merged = work.merge(output)
    assert merged.digest == work.digest()
    assert sorted(path.name for path in output.iterdir()) == ["counts.json", "dataset.h5"]
    assert work.unfinished() == []


def test_two_merges_at_once_make_one_result(work, tmp_path) -> None:
    twins = [work.start(tmp_path / "out") for _ in range(2)]
    assert [twin.wait() for twin in twins] == [0, 0]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["counts.json", "dataset.h5"]
    with open_dataset(tmp_path / "out" / "dataset.h5") as dataset:
        assert dataset.computed_digest() == dataset.digest == work.digest()
    assert work.unfinished() == []


def test_a_failed_task_writes_its_message_to_the_failure_file(work, tmp_path) -> None:
    lose_a_part(work)
    _, said = (task := work.start(tmp_path / "out", stderr=subprocess.PIPE)).communicate()
    assert task.returncode == 1
    assert said.decode() == f"shoal: {Path(work.plan('').failure).read_text()}\n"


@NEEDS_A_SMALL_DISK
def test_a_full_disk_is_an_error_that_leaves_nothing(tmp_path) -> None:
    (tmp_path / "work").mkdir()
    work = Work(tmp_path / "work", [(150_000, 10)], packed=True)
    pages = sum(-(-path.stat().st_size // 4096) for path in work.folder.rglob("*") if path.is_file())
    kilobytes = 4 * pages + int(0.5 * work.part(0).stat().st_size / 1024)
    small = tmp_path / "small"
    (work.folder / PLAN_NAME).write_bytes(orjson.dumps(asdict(work.plan(small / "out", small / "work"))))
    (tmp_path / "records").write_bytes(work.input())
    script = (
        f"cp -r work small && {WORK_VARIABLE}={small}/work {' '.join(ENTRY)} <records; "
        "echo status $?; ls -A small small/out small/work"
    )
    done = run_on_small_disk(tmp_path, kilobytes, script)
    assert done.stdout.startswith("status 1\n"), done.stdout
    assert "no space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert not any(
        name in done.stdout for name in ("dataset.h5", "counts.json", "merged.json", "shoal-merging", "partial")
    )


@pytest.mark.slow
def test_memory_does_not_grow_with_the_parts(tmp_path) -> None:
    code = (
        "from jobs.dataset import MakeDataset; MakeDataset(['--step-num=4', '--reducer']).execute(); "
        "status = open('/proc/self/status').read(); "
        "print('\\n', int(status.split('VmHWM:')[1].split()[0]) // 1024)"
    )
    peaks = []
    for parts in (2, 10):
        (tmp_path / str(parts)).mkdir()
        work = Work(tmp_path / str(parts), [(1_000_000, 9)] * parts)
        printed, _ = work.start(
            work.folder / "out", sys.executable, "-c", code, stdout=subprocess.PIPE, text=True
        ).communicate()
        peaks.append(int(printed.split()[-1]))
        shutil.rmtree(work.folder)
    assert peaks[1] < peaks[0] + 20, peaks


def test_a_result_on_s3_is_below_its_digest(work, tmp_path, aws, monkeypatch) -> None:
    import boto3

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    client = boto3.client("s3")
    client.create_bucket(Bucket="pile")
    for path in work.folder.rglob("*"):
        if path.is_file():
            client.upload_file(str(path), "pile", f"made/{path.relative_to(work.folder)}")
    merged = work.merge("s3://pile/datasets", "s3://pile/made")
    assert merged.dataset == f"s3://pile/datasets/{work.digest()}/dataset.h5"
    keys = {each["Key"] for each in client.list_objects_v2(Bucket="pile", Prefix="datasets/")["Contents"]}
    assert keys == {f"datasets/{merged.digest}/{name}" for name in ("counts.json", "dataset.h5")}
    client.download_file("pile", f"datasets/{merged.digest}/dataset.h5", str(tmp_path / "d.h5"))
    with open_dataset(tmp_path / "d.h5") as dataset:
        assert dataset.computed_digest() == merged.digest
    assert compression(tmp_path / "d.h5") == "gzip"
