"""Raw files to a dataset, by the real jobs on mrjob's runners, against the oracle."""

import bz2
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.dataset import open_dataset
from corpus.errors import DataError
from corpus.settings import Settings
from corpus.text import EXTRA_STOPWORDS, load_stopwords
from jobs.pipeline import preprocess
from tests import oracle
from tests.data import ABSENT, REVIEWS

NLTK = set(load_stopwords()) - set(EXTRA_STOPWORDS)


def assert_equals_oracle(folder: Path, contents: list[bytes]) -> None:
    arrays, vocabulary, counts = oracle.dataset(contents, NLTK)
    with h5py.File(folder / "dataset.h5") as file:
        for path, expected in arrays.items():
            assert file[path].dtype == expected.dtype
            assert np.array_equal(file[path][:], expected), path
        assert list(file["vocabulary"].asstr()[:]) == vocabulary
        in_file = json.loads(file.attrs["counts"])
    published = json.loads((folder / "counts.json").read_text())
    assert published == in_file
    reasons = counts.pop("malformed_by_reason")
    assert {name: number for name, number in published.pop("malformed_by_reason").items() if number} == reasons
    assert published == counts
    with open_dataset(folder / "dataset.h5") as dataset:
        assert dataset.computed_digest() == dataset.digest


def reviews(*texts_and_ratings: tuple[object, object]) -> bytes:
    return b"".join(
        json.dumps({"reviewText": text, "overall": rating}).encode() + b"\n" for text, rating in texts_and_ratings
    )


PLAIN = reviews(*((f"this lamp number word{chr(97 + n)} is bright", 1 + n % 5) for n in range(20)))

WORDS = st.sampled_from(["good", "Bad", "the", "don't", "'quoted'", "caf\u00e9", "&amp;", "it\u2019s", "lamp", "123"])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join) | st.text(max_size=10)
LINES = st.one_of(
    st.builds(lambda text, rating: reviews((text, rating)), TEXTS, st.sampled_from([1, 2, 3, 4, 5, "4", 5.0])),
    st.sampled_from([b"\n", b" \r\n", b"{\n", b'{"overall": 5}\n', reviews(("a", 9)), reviews((None, 3))]),
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(LINES, max_size=12), min_size=1, max_size=3), st.booleans(), st.booleans())
def test_generated_input_makes_the_oracles_dataset(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[bytes]], mark: bool, last_newline: bool
) -> None:
    folder = tmp_path_factory.mktemp("generated")
    contents = [(b"\xef\xbb\xbf" if mark else b"") + b"".join([PLAIN, *lines]) for lines in files]
    if not last_newline:
        contents = [content.removesuffix(b"\n") for content in contents]
    paths = [folder / f"input-{number}.json" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    preprocess(paths, folder / "out", runner="inline", max_malformed=1)
    assert_equals_oracle(folder / "out", contents)


@pytest.mark.skipif(not REVIEWS, reason=ABSENT)
@pytest.mark.parametrize("runner", ["inline", "local"])
def test_real_reviews_make_the_oracles_dataset(tmp_path: Path, runner: str) -> None:
    merged = preprocess(REVIEWS, tmp_path, runner=runner)
    assert_equals_oracle(tmp_path, [gzip.decompress(path.read_bytes()) for path in REVIEWS])
    known = {"lines": 25_614, "malformed": 21, "empty": 14, "distinct": 18_898, "conflicting": 6, "wordless": 1}
    assert {name: merged.counts[name] for name in known} == known
    assert (merged.counts["train"], merged.counts["test"]) == (17_039, 1_858)


@pytest.mark.skipif(not REVIEWS, reason=ABSENT)
def test_how_the_input_is_cut_changes_nothing(tmp_path: Path) -> None:
    lines = b"".join(gzip.decompress(path.read_bytes()) for path in REVIEWS).splitlines(keepends=True)
    digests = set()
    for pieces in (1, 2, 7):
        folder = tmp_path / str(pieces)
        folder.mkdir()
        for number in range(pieces):
            (folder / f"{number}.json").write_bytes(b"".join(lines[number::pieces]))
        digests.add(preprocess([folder], tmp_path / f"out-{pieces}", runner="inline").digest)
    assert len(digests) == 1


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lambda data: data])
def test_compressed_files_of_several_members_are_read_to_their_end(tmp_path: Path, compress) -> None:
    suffix = {gzip.compress: ".gz", bz2.compress: ".bz2"}.get(compress, "")
    path = tmp_path / f"reviews.json{suffix}"
    path.write_bytes(compress(PLAIN) + compress(reviews(("a second member", 5))))
    preprocess([path], tmp_path / "out", runner="inline")
    assert_equals_oracle(tmp_path / "out", [PLAIN, reviews(("a second member", 5))])


def test_a_range_that_ends_within_a_line_loses_nothing(tmp_path: Path) -> None:
    content = reviews(*((f"{'long text ' * 3_000} {n * 'x'}", 1 + n % 5) for n in range(150)))
    (tmp_path / "reviews.json").write_bytes(content)
    assert len(content) > 4 << 20
    preprocess([tmp_path / "reviews.json"], tmp_path / "out")
    assert_equals_oracle(tmp_path / "out", [content])


def test_other_settings_make_another_dataset(tmp_path: Path) -> None:
    (tmp_path / "reviews.json").write_bytes(PLAIN + reviews(("lamp lamp lamp", 3)))
    (tmp_path / "stop.txt").write_text("lamp\n")
    chosen = Settings(
        row_length=3, vocabulary_size=2, positive_from=3, test_share=0.3, stopwords=str(tmp_path / "stop.txt")
    )
    merged = preprocess([tmp_path / "reviews.json"], tmp_path / "out", settings=chosen)
    assert merged.counts["wordless"] == 1
    with open_dataset(tmp_path / "out" / "dataset.h5") as dataset:
        assert dataset.stopwords == {"lamp"}
        assert dataset.vocabulary == ["bright", "is"]
        assert dataset.train.tokens.shape == (merged.counts["train"], 3)
        assert dataset.train.labels[:].tolist() == (dataset.train.ratings[:] >= 3).tolist()


def test_a_hot_text_is_one_row(tmp_path: Path) -> None:
    content = reviews(*[("the same lamp", 5)] * 3_000, *[("the same lamp", 1)] * 3_000) + PLAIN
    (tmp_path / "reviews.json").write_bytes(content)
    merged = preprocess([tmp_path / "reviews.json"], tmp_path / "out", runner="inline")
    assert (merged.counts["distinct"], merged.counts["conflicting"]) == (21, 1)
    assert merged.counts["ratings"]["after"]["1"] == 5


def test_a_second_run_replaces_the_first_and_leaves_no_trace(tmp_path: Path) -> None:
    path, output = tmp_path / "reviews.json", tmp_path / "out"
    path.write_bytes(PLAIN)
    first = preprocess([path], output, runner="inline").digest
    path.write_bytes(PLAIN + reviews(("another lamp", 5)))
    assert preprocess([path], output, runner="inline").digest != first
    assert sorted(found.name for found in output.iterdir()) == ["counts.json", "dataset.h5"]


def empty(folder: Path) -> list[Path]:
    (folder / "empty.json").write_bytes(b"")
    return [folder / "empty.json"]


def blank(folder: Path) -> list[Path]:
    (folder / "blank.json").write_bytes(b"\n \n")
    return [folder / "blank.json"]


def truncated(folder: Path) -> list[Path]:
    path = folder / "cut.json.gz"
    path.write_bytes(gzip.compress(os.urandom(1000) + PLAIN)[:-20])
    (folder / "sound.json").write_bytes(PLAIN)
    return [folder / "sound.json", path]


def not_gzip(folder: Path) -> list[Path]:
    (folder / "plain.json.gz").write_bytes(PLAIN)
    return [folder / "plain.json.gz"]


def noise(folder: Path) -> list[Path]:
    (folder / "noise.json").write_bytes(os.urandom(20_000))
    return [folder / "noise.json"]


def wordless(folder: Path) -> list[Path]:
    (folder / "wordless.json").write_bytes(reviews(("the of and", 5), ("would get", 1)))
    return [folder / "wordless.json"]


def textless(folder: Path) -> list[Path]:
    (folder / "textless.json").write_bytes(reviews(("123", 5), ("!", 1)))
    return [folder / "textless.json"]


def hollow(folder: Path) -> list[Path]:
    (folder / "hollow").mkdir()
    return [folder / "hollow"]


def twice(folder: Path) -> list[Path]:
    (folder / "once.json").write_bytes(PLAIN)
    return [folder / "once.json", folder / "once.json"]


@pytest.mark.parametrize("runner", ["inline", "local"])
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda folder: [folder / "absent.json"], r"absent\.json: no such file"),
        (empty, r"empty\.json is empty"),
        (blank, "the input has no lines"),
        (truncated, r"cut\.json\.gz ends in the middle of its compressed data"),
        (not_gzip, r"cannot read .*plain\.json\.gz"),
        (noise, r"lines are malformed \(\d+ not_json"),
        (wordless, "hold only stopwords"),
        (textless, "none of the 2 lines holds a text"),
        (hollow, "the folder .*hollow holds no files"),
        (twice, r"once\.json is given twice"),
    ],
)
def test_bad_input_ends_with_its_reason_and_leaves_nothing(tmp_path: Path, make, sentence: str, runner: str) -> None:
    inputs = make(tmp_path)
    with pytest.raises(DataError, match=sentence):
        preprocess(inputs, tmp_path / "out", runner=runner)
    assert not (tmp_path / "out").exists() or list((tmp_path / "out").iterdir()) == []


def test_malformed_lines_are_fatal_only_above_the_share(tmp_path: Path) -> None:
    (tmp_path / "reviews.json").write_bytes(PLAIN + b"{\n")
    with pytest.raises(DataError, match=r"1 of 21 lines are malformed \(1 not_json\), more than 4%"):
        preprocess([tmp_path / "reviews.json"], tmp_path / "out", runner="inline", max_malformed=0.04)
    merged = preprocess([tmp_path / "reviews.json"], tmp_path / "out", runner="inline", max_malformed=0.05)
    assert merged.counts["malformed_by_reason"]["not_json"] == 1


def test_too_little_space_is_found_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reviews.json").write_bytes(PLAIN)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=100))
    with pytest.raises(DataError, match=r"the work needs about .* MB in .*out, and 0 MB are free"):
        preprocess([tmp_path / "reviews.json"], tmp_path / "out")


def assert_group_ends(group: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("processes of the interrupted run are still there")


def test_an_interrupted_run_leaves_neither_files_nor_processes(tmp_path: Path) -> None:
    path, output = tmp_path / "reviews.json", tmp_path / "out"
    path.write_bytes(reviews(*((f"lamp {n} {'bright ' * 50}", 1 + n % 5) for n in range(60_000))))
    code = (
        "import sys; from pathlib import Path; from jobs.pipeline import preprocess;"
        "preprocess([Path(sys.argv[1])], Path(sys.argv[2]))"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", code, path, output], start_new_session=True, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not list(output.glob(".work-*/tasks/**/stderr")):
        assert time.monotonic() < deadline, "no task ever started"
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode != 0
    assert list(output.iterdir()) == []
    assert_group_ends(running.pid)


def test_what_a_killed_run_left_is_cleared_by_the_next(tmp_path: Path) -> None:
    output = tmp_path / "out"
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = output / f".work-{gone.pid}-abc"
    left.mkdir(parents=True)
    (left / "distinct").mkdir()
    (left / "distinct" / "part-00000").write_text("half")
    (tmp_path / "reviews.json").write_bytes(PLAIN)
    preprocess([tmp_path / "reviews.json"], output, runner="inline")
    assert sorted(path.name for path in output.iterdir()) == ["counts.json", "dataset.h5"]


def test_paths_are_taken_as_they_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a folder, with [odd] na\u00efve {name}"
    folder.mkdir()
    (folder / "reviews 1.json").write_bytes(PLAIN)
    monkeypatch.chdir(folder)
    before = set(Path(tempfile.gettempdir()).iterdir())
    preprocess([Path("reviews 1.json")], Path("results/data"))
    assert_equals_oracle(folder / "results" / "data", [PLAIN])
    left = {path.name for path in set(Path(tempfile.gettempdir()).iterdir()) - before}
    assert not {name for name in left if name.startswith("wrapper.lock")}


def test_results_inside_the_input_folder_are_not_read_as_reviews(tmp_path: Path) -> None:
    (tmp_path / "reviews.json").write_bytes(PLAIN)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "x.json").write_bytes(b"no review")
    first = preprocess([tmp_path], tmp_path / "out", runner="inline")
    assert preprocess([tmp_path], tmp_path / "out", runner="inline").digest == first.digest


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def undecodable(folder: Path) -> Path:
    path = Path(os.fsdecode(os.fsencode(folder) + b"/\xff.json"))
    path.write_bytes(PLAIN)
    return path


def packed(name: str, content: bytes):
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (pipe, "pipe is no regular file"),
        (undecodable, r"\\xff\.json' is no UTF-8; rename"),
        (
            packed("reviews", gzip.compress(PLAIN)),
            "holds gz data, but its name does not say so; rename it to end in .gz",
        ),
        (packed("reviews.gz", b"PK\x03\x04..."), "holds zip data, but its name does not say so; unpack it first"),
    ],
)
def test_files_that_cannot_be_read_as_they_are_named_are_refused(tmp_path: Path, make, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        preprocess([make(tmp_path)], tmp_path / "out", runner="inline")


def test_a_file_and_a_link_to_it_are_one(tmp_path: Path) -> None:
    (tmp_path / "reviews.json").write_bytes(PLAIN)
    (tmp_path / "link.json").symlink_to(tmp_path / "reviews.json")
    with pytest.raises(DataError, match="is given twice"):
        preprocess([tmp_path / "reviews.json", tmp_path / "link.json"], tmp_path / "out", runner="inline")


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(LINES, max_size=40), min_size=1, max_size=4))
def test_much_generated_input_makes_the_oracles_dataset(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("much")
    contents = [b"".join([PLAIN, *lines]) for lines in files]
    paths = [folder / f"input-{number}.json" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    preprocess(paths, folder / "out", runner="inline", max_malformed=1)
    assert_equals_oracle(folder / "out", contents)
