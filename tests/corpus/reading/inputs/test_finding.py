"""Which files are found for the addresses that a person named, here and on S3."""

import os
from pathlib import Path

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from corpus.reading.inputs.finding import find_files, key_pattern
from corpus.reading.sources import Inputs, ReadingOptions
from embedded.aws import EmbeddedAws

BUCKET = "pile"


def write(folder: Path, *names: str, content: bytes = b"x\n") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def names(folder: Path, *given: str | Path, leave_out: Path | None = None) -> list[str]:
    listing = find_files(Inputs(files=tuple(map(str, given))), leave_out=None if leave_out is None else str(leave_out))
    return [os.path.relpath(each.address, folder.resolve()) for each in listing.files]


def test_a_folder_is_all_files_below_it_but_for_hidden_ones(tmp_path: Path) -> None:
    write(tmp_path, "b.json", "a/2.json", "a/1.json", ".git/x", "_SUCCESS", "a/.hidden.json", "_old/x.json")
    assert names(tmp_path, tmp_path) == ["b.json", "a/1.json", "a/2.json"]


def test_a_hidden_file_that_is_named_is_taken(tmp_path: Path) -> None:
    write(tmp_path, ".hidden.json")
    assert names(tmp_path, tmp_path / ".hidden.json") == [".hidden.json"]


def test_the_results_of_the_run_before_are_no_input(tmp_path: Path) -> None:
    write(tmp_path, "reviews.json", "out/dataset.h5", "out/counts.json", "outer/reviews.json")
    assert names(tmp_path, tmp_path, leave_out=tmp_path / "out") == ["reviews.json", "outer/reviews.json"]


@pytest.mark.parametrize("where", [".", ".."])
def test_results_do_not_go_to_where_the_input_lies(tmp_path: Path, where: str) -> None:
    write(tmp_path, "reviews/a.json")
    with pytest.raises(DataError, match="choose another --output"):
        names(tmp_path, tmp_path / "reviews", leave_out=tmp_path / "reviews" / where)


def test_a_pattern_is_what_it_matches_as_in_a_shell(tmp_path: Path) -> None:
    write(tmp_path, "a.json", "b.json", "b.csv", "deep/er/c.json", ".d.json")
    assert names(tmp_path, tmp_path / "*.json") == ["a.json", "b.json"]
    assert names(tmp_path, tmp_path / "[ab].json") == ["a.json", "b.json"]
    assert names(tmp_path, tmp_path / "**" / "c.*") == ["deep/er/c.json"]
    assert names(tmp_path, tmp_path / "de*") == ["deep/er/c.json"]


def test_a_pattern_takes_each_file_once_and_no_results(tmp_path: Path) -> None:
    write(tmp_path, "a.json", "deep/b.json", "out/dataset.h5")
    (tmp_path / "hollow").mkdir()
    for pattern in ("*", "**", "**/*"):
        assert names(tmp_path, tmp_path / pattern, leave_out=tmp_path / "out") == ["a.json", "deep/b.json"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    write(tmp_path, "a[1].json", "a1.json")
    assert names(tmp_path, tmp_path / "a[1].json") == ["a[1].json"]


@pytest.mark.parametrize("given", [("",), ("*",), ("a.json", "made/dataset.h5", "made/counts.json")])
def test_the_results_of_an_earlier_run_elsewhere_are_left_out_with_a_warning(
    tmp_path: Path, given: tuple[str, ...]
) -> None:
    write(tmp_path, "a.json", "made/dataset.h5", "made/counts.json")
    listing = find_files(Inputs(files=tuple(str(tmp_path / each) for each in given)))
    assert [Path(each.address).name for each in listing.files] == ["a.json"]
    assert listing.warnings == (
        f"{tmp_path.resolve() / 'made'} holds the results of an earlier run, which are left out",
    )


def test_a_file_named_counts_is_a_file_where_no_dataset_is_beside_it(tmp_path: Path) -> None:
    write(tmp_path, "counts.json", "other/dataset.h5")
    assert names(tmp_path, tmp_path) == ["counts.json", "other/dataset.h5"]


def test_each_file_knows_what_it_is_for(tmp_path: Path) -> None:
    write(tmp_path, "a", "b", "c", "d")
    a, b, c, d = (str(tmp_path / name) for name in "abcd")
    found = find_files(Inputs(files=(a,), test=(b,))).files
    assert [(each.test, each.code) for each in found] == [(False, None), (True, None)]
    found = find_files(Inputs(positive=(c,), negative=(d,))).files
    assert [(each.test, each.code) for each in found] == [(False, 1), (False, 0)]


def test_a_file_that_was_changed_is_another(tmp_path: Path) -> None:
    write(tmp_path, "a")
    before = find_files(Inputs(files=(str(tmp_path),))).files
    os.utime(tmp_path / "a", ns=(1, 1))
    assert find_files(Inputs(files=(str(tmp_path),))).files != before


@pytest.mark.parametrize(
    ("name", "packed", "plain"), [("a.json.gz", ".gz", 4), ("a.zst", ".zst", 4), ("a.json", None, 1)]
)
def test_a_packed_file_holds_more_than_itself(tmp_path: Path, name: str, packed: str | None, plain: int) -> None:
    write(tmp_path, name, content=b"12345")
    (found,) = find_files(Inputs(files=(str(tmp_path),))).files
    assert (found.compression, found.plain_size) == (packed, 5 * plain)


def test_an_empty_file_is_left_out_with_a_warning(tmp_path: Path) -> None:
    write(tmp_path, "a")
    write(tmp_path, "empty", content=b"")
    listing = find_files(Inputs(files=(str(tmp_path),)))
    assert [Path(each.address).name for each in listing.files] == ["a"]
    assert listing.warnings == (f"{tmp_path.resolve() / 'empty'} is empty and left out",)


def absent(folder: Path) -> list[Path]:
    return [folder / "absent.json"]


def below_a_file(folder: Path) -> list[Path]:
    write(folder, "file")
    return [folder / "file" / "x.json"]


def unmatched(folder: Path) -> list[Path]:
    return [folder / "*.json"]


def hollow(folder: Path) -> list[Path]:
    write(folder, "hollow/.hidden")
    return [folder / "hollow"]


def empty(folder: Path) -> list[Path]:
    write(folder, "a", "b", content=b"")
    return [folder]


def pipe(folder: Path) -> list[Path]:
    os.mkfifo(folder / "pipe")
    return [folder / "pipe"]


def undecodable(folder: Path) -> list[Path]:
    path = Path(os.fsdecode(os.fsencode(folder) + b"/\xff.json"))
    path.write_bytes(b"x")
    return [path]


def loop(folder: Path) -> list[Path]:
    (folder / "loop").symlink_to("loop")
    return [folder / "loop"]


def results(folder: Path) -> list[Path]:
    write(folder, "dataset.h5", "counts.json")
    return [folder]


def twice(folder: Path) -> list[Path]:
    write(folder, "once")
    return [folder / "once", folder]


def linked(folder: Path) -> list[Path]:
    write(folder, "once")
    (folder / "link").symlink_to(folder / "once")
    return [folder / "once", folder / "link"]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (absent, r"absent\.json: no such file"),
        (below_a_file, r"x\.json: no such file"),
        (unmatched, r"no file matches .*\*\.json"),
        (hollow, "the folder .*hollow holds no files"),
        (empty, "all 2 files of the input are empty"),
        (pipe, "pipe is not a regular file"),
        (undecodable, r"\\xff\.json' is not UTF-8; rename"),
        (loop, "cannot read .*loop: Too many .*; correct that, or leave it out"),
        (results, "the input holds nothing but the results in .*; give files of reviews"),
        (twice, "once is given twice"),
        (linked, "once is given twice"),
    ],
)
def test_what_cannot_be_taken_is_said(tmp_path: Path, make, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        find_files(Inputs(files=tuple(map(str, make(tmp_path)))))


def test_a_file_to_learn_from_is_not_one_to_test_with(tmp_path: Path) -> None:
    write(tmp_path, "a")
    with pytest.raises(DataError, match="given twice"):
        find_files(Inputs(files=(str(tmp_path),), test=(str(tmp_path / "a"),)))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Inputs(), "no input is given"),
        (lambda: Inputs(test=("a",)), "no input is given"),
        (lambda: Inputs(positive=("a",)), "go together"),
        (lambda: Inputs(files=("a",), positive=("b",), negative=("c",)), "one or the other"),
        (lambda: Inputs(test=("a",), positive=("b",), negative=("c",)), "--test-share"),
        (lambda: Inputs(positive=("b",), negative=("c",), options=ReadingOptions(label="x")), "leave out the options"),
        (lambda: ReadingOptions(rating="a", label="b"), "exclude each other"),
        (lambda: ReadingOptions(rating="a", positive_label="b"), "--positive-label goes with labels"),
        (lambda: ReadingOptions(rating="a", classes=("a", "b", "c")), "leave out --rating-field"),
        (
            lambda: ReadingOptions(positive_label="a", classes=("a", "b", "c")),
            "leave out --rating-field and --positive",
        ),
        (lambda: ReadingOptions(classes=("a", "b")), "there are names of 2 classes"),
        (lambda: ReadingOptions(classes=("a", "b", "__label__a")), "two classes have the same name"),
        (lambda: ReadingOptions(classes=("a", "b", "__label__")), "the name of a class is empty"),
        (
            lambda: Inputs(positive=("b",), negative=("c",), options=ReadingOptions(classes=("a", "b", "c"))),
            "leave out the options",
        ),
        (lambda: ReadingOptions(kind="json", separator=";"), "--separator goes with --format csv"),
        (lambda: ReadingOptions(separator=""), "--separator is empty"),
        (lambda: ReadingOptions(separator="a\nb"), "newline"),
        (lambda: ReadingOptions(kind="fasttext", text=("a",)), "has no fields"),
    ],
)
def test_options_that_contradict_each_other_are_refused(make, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        make()


KEYS = (
    *("reviews/a.json", "reviews/b.json.gz", "reviews/2018/c.json", "reviews/_SUCCESS", "reviews/.x/d.json"),
    *("reviews-old/e.json", "reviews/made/dataset.h5", "alone.json", "alone.json.gz", "odd/a[1].json", "odd/a1.json"),
)


@pytest.fixture(scope="module")
def _s3(aws: EmbeddedAws) -> None:
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    for key in KEYS:
        client.put_object(Bucket=BUCKET, Key=key, Body=key.encode())
    client.put_object(Bucket=BUCKET, Key="reviews/", Body=b"")


def keys(*given: str, leave_out: str | None = None) -> list[str]:
    inputs = Inputs(files=tuple(f"s3://{BUCKET}/{key}" for key in given))
    return [each.address.removeprefix(f"s3://{BUCKET}/") for each in find_files(inputs, leave_out).files]


@pytest.mark.usefixtures("_s3")
def test_an_object_of_s3_is_that_object(tmp_path: Path) -> None:
    (found,) = find_files(Inputs(files=(f"s3://{BUCKET}/alone.json",))).files
    assert (found.address, found.size) == (f"s3://{BUCKET}/alone.json", len("alone.json"))
    assert found.identity == boto3.client("s3").head_object(Bucket=BUCKET, Key="alone.json")["ETag"].strip('"')


@pytest.mark.usefixtures("_s3")
@pytest.mark.parametrize("given", ["reviews", "reviews/"])
def test_a_prefix_of_s3_is_a_folder(given: str) -> None:
    assert keys(given, leave_out=f"s3://{BUCKET}/reviews/made") == [
        "reviews/2018/c.json",
        "reviews/a.json",
        "reviews/b.json.gz",
    ]


@pytest.mark.usefixtures("_s3")
def test_a_pattern_of_s3_is_what_it_matches() -> None:
    assert keys("reviews/*.json*") == ["reviews/a.json", "reviews/b.json.gz"]
    assert keys("reviews*/**/[!ab].json") == ["reviews-old/e.json", "reviews/.x/d.json", "reviews/2018/c.json"]
    assert keys("odd/a[1].json") == ["odd/a[1].json"]
    assert keys("odd/a[0-9].json") == ["odd/a1.json"]


@pytest.mark.usefixtures("_s3")
@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        (f"s3://{BUCKET}/absent", "there is nothing at s3://pile/absent; check the address"),
        (f"s3://{BUCKET}/rev", "there is nothing at s3://pile/rev; check the address"),
        (f"s3://{BUCKET}/*.csv", r"there is nothing at s3://pile/\*\.csv; check the pattern"),
        ("s3://nobody-has-it/a", "there is no bucket nobody-has-it"),
        ("s3://", "is not an address of S3"),
    ],
)
def test_what_is_not_on_s3_is_said(address: str, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        find_files(Inputs(files=(address,)))


@given(st.text(alphabet="ab/.[]!*?-", max_size=12))
def test_any_text_is_a_pattern_or_none(pattern: str) -> None:
    """No pattern is an error of ours, however its brackets stand."""
    key_pattern(pattern).fullmatch("a/b")
