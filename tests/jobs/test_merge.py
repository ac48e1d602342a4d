"""Part files become one dataset: exactly, in bounded memory, and never half-written."""

import json
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from common.errors import DataError
from corpus.dataset import DatasetWriter, RowBlock, open_dataset, write_dataset
from corpus.dataset_settings import Settings
from corpus.reading.tally import Tally
from jobs.choose import VocabularyChoice
from jobs.job import run_as_command
from jobs.merge import MergeResult, read_merge_result, run
from tests.corpus import test_dataset
from tests.corpus.test_dataset import joined
from tests.small_disk import NEEDS_A_SMALL_DISK, run_on_small_disk

SETTINGS = Settings(row_length=4, test_share=0.3)
WORDS = ["good", "bad", "lamp"]
CHOICE = VocabularyChoice(positive_from=4, words=WORDS, counts=[9, 5, 2])
ENTRY = [sys.executable, "-m", "jobs.merge"]


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
        for name, tally in (("words", read), ("encoded", encoded)):
            (folder / name).mkdir()
            lines = [b"%s\t%s\n" % record for record in tally.records()]
            (folder / name / "part-00000").write_bytes(b"good\t9\n" + b"".join(lines))
        (folder / "choice.json").write_text(json.dumps(asdict(CHOICE)))

    def part(self, number: int) -> Path:
        return self.folder / "parts" / f"part-{number:04x}.h5"

    def arguments(self, output: Path | str, folder: str | None = None) -> list[str]:
        at = folder or str(self.folder)
        return [
            *(f"--parts={at}/parts", "--records", f"{at}/words", f"{at}/encoded", f"--choice={at}/choice.json"),
            *(f"--output={output}", f"--summary={at}/merged.json"),
        ]

    def merge(self, output: Path) -> MergeResult:
        return run(self.arguments(output))

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


def test_a_merge_writes_the_dataset_counts_and_summary(merged) -> None:
    out = Path(merged.dataset).parent
    assert sorted(path.name for path in out.iterdir()) == ["counts.json", "dataset.h5"]
    assert read_merge_result(str(out.parent / "work" / "merged.json")) == merged
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


def remake_a_part(work, **other):
    """Write a part again, with the same rows but with one other setting or other stopwords."""
    made = {"settings": SETTINGS, "stopwords": frozenset({"of"}), **other}
    write_dataset(work.part(3), train=rows(5, 3), test=rows(60, 1_003), vocabulary=(), **made)


def double_a_tally(work: Work) -> None:
    shutil.copy(work.folder / "encoded" / "part-00000", work.folder / "encoded" / "part-00001")


HARMS = {
    "a lost part": lose_a_part,
    "no parts": lambda work: shutil.rmtree(work.folder / "parts"),
    "a cut part": lambda work: work.part(2).write_bytes(work.part(2).read_bytes()[:-1_000]),
    "other settings": lambda work: remake_a_part(work, settings=replace(SETTINGS, test_share=0.1)),
    "other stopwords": lambda work: remake_a_part(work, stopwords=frozenset({"of", "the"})),
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
merge.run(sys.argv[2:])
"""


@pytest.mark.parametrize("place", ["writer:append:3", "writer:finish:0", "merge:writable:0", "merge:write_text:0"])
def test_a_killed_merge_leaves_nothing_and_the_next_one_works(work, tmp_path, place) -> None:
    output = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", KILLED, place, *work.arguments(output)], check=False)
    assert done.returncode == -9
    assert not (output / "dataset.h5").exists()
    assert not (work.folder / "merged.json").exists()
    assert work.unfinished()
    merged = work.merge(output)
    assert merged.digest == work.digest()
    assert sorted(path.name for path in output.iterdir()) == ["counts.json", "dataset.h5"]
    assert work.unfinished() == []


def test_two_merges_at_once_make_one_result(work, tmp_path) -> None:
    twins = [subprocess.Popen([*ENTRY, *work.arguments(tmp_path / "out")]) for _ in range(2)]
    assert [twin.wait() for twin in twins] == [0, 0]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["counts.json", "dataset.h5"]
    with open_dataset(tmp_path / "out" / "dataset.h5") as dataset:
        assert dataset.computed_digest() == dataset.digest == work.digest()
    assert work.unfinished() == []


def test_a_failed_step_writes_its_message_to_the_failure_file(work, tmp_path, monkeypatch) -> None:
    lose_a_part(work)
    failure = tmp_path / "failure.txt"
    monkeypatch.setattr(sys, "argv", ["merge", *work.arguments(tmp_path / "out"), f"--failure={failure}"])
    with pytest.raises(SystemExit) as ended:
        run_as_command(lambda arguments: run(arguments).dataset)
    assert ended.value.code == f"shoal: {failure.read_text()}"
    assert failure.read_text().startswith("the part files have")


@NEEDS_A_SMALL_DISK
def test_a_full_disk_is_an_error_that_leaves_nothing(tmp_path) -> None:
    (tmp_path / "work").mkdir()
    work = Work(tmp_path / "work", [(150_000, 10)], packed=True)
    pages = sum(-(-path.stat().st_size // 4096) for path in work.folder.rglob("*") if path.is_file())
    kilobytes = 4 * pages + int(0.5 * work.part(0).stat().st_size / 1024)
    script = (
        "cp -r work small && "
        f"{' '.join([*ENTRY, *work.arguments(tmp_path / 'small' / 'out', str(tmp_path / 'small' / 'work'))])}; "
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
        "import sys; from jobs import merge; merge.run(sys.argv[1:]); status = open('/proc/self/status').read(); "
        "print(int(status.split('VmHWM:')[1].split()[0]) // 1024)"
    )
    peaks = []
    for parts in (2, 10):
        (tmp_path / str(parts)).mkdir()
        work = Work(tmp_path / str(parts), [(1_000_000, 9)] * parts)
        command = [sys.executable, "-c", code, *work.arguments(work.folder / "out")]
        peaks.append(int(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
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
    merged = run(work.arguments("s3://pile/datasets", "s3://pile/made"))
    assert merged.dataset == f"s3://pile/datasets/{work.digest()}/dataset.h5"
    keys = {each["Key"] for each in client.list_objects_v2(Bucket="pile", Prefix="datasets/")["Contents"]}
    assert keys == {f"datasets/{merged.digest}/{name}" for name in ("counts.json", "dataset.h5")}
    assert read_merge_result("s3://pile/made/merged.json") == merged
    client.download_file("pile", f"datasets/{merged.digest}/dataset.h5", str(tmp_path / "d.h5"))
    with open_dataset(tmp_path / "d.h5") as dataset:
        assert dataset.computed_digest() == merged.digest
    assert compression(tmp_path / "d.h5") == "gzip"
