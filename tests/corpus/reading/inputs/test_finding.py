"""Which files are found for the addresses that a person named, here and on S3."""

import os
from pathlib import Path

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from corpus.reading.inputs.finding import find_files, key_pattern
from corpus.reading.sources import Inputs
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
    assert names(tmp_path, tmp_path / "a" / ".hidden.json") == ["a/.hidden.json"]  # as it is named


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
    write(tmp_path, "a.json", "deep/b.json", "out/dataset.h5", "a[1].json", "a1.json")
    (tmp_path / "hollow").mkdir()
    for pattern in ("*", "**", "**/*"):
        found = names(tmp_path, tmp_path / pattern, leave_out=tmp_path / "out")
        assert sorted(found) == ["a.json", "a1.json", "a[1].json", "deep/b.json"]
    assert names(tmp_path, tmp_path / "a[1].json") == ["a[1].json"]  # a file of this name


@pytest.mark.parametrize("given", [("",), ("*",), ("a.json", "made/dataset.h5", "made/counts.json")])
def test_results_of_an_earlier_run_are_left_out_with_a_warning(tmp_path: Path, given: tuple[str, ...]) -> None:
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


def undecodable(folder: Path) -> str:
    path = Path(os.fsdecode(os.fsencode(folder) + b"/\xff.json"))
    path.write_bytes(b"x")
    return path.name


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder with what cannot be taken."""
    write(tmp_path, "file", "hollow/.hidden", "results/dataset.h5", "results/counts.json", "once/once")
    write(tmp_path, "empty/a", "empty/b", content=b"")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "link").symlink_to(tmp_path / "once" / "once")
    return tmp_path


@pytest.mark.parametrize(
    ("names", "wrong"),
    [
        (["absent.json"], r"absent\.json: no such file"),
        (["file/x.json"], r"x\.json: no such file"),
        (["*.json"], r"no file matches .*\*\.json"),
        (["hollow"], "the folder .*hollow holds no files"),
        (["empty"], "all 2 files of the input are empty"),
        (["pipe"], "pipe is not a regular file"),
        (["loop"], "cannot read .*loop: Too many "),
        (["results"], "the input holds nothing but the results in "),
        (["once/once", "once"], "once is given twice"),
        (["once/once", "link"], "once is given twice"),
    ],
)
def test_what_cannot_be_taken_is_named(odd: Path, names: list[str], wrong: str) -> None:
    with pytest.raises(DataError, match=wrong):
        find_files(Inputs(files=tuple(str(odd / name) for name in names)))


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"\\xff\.json' is not UTF-8"):
        find_files(Inputs(files=(str(tmp_path / undecodable(tmp_path)),)))


def test_a_file_to_learn_from_is_not_one_to_test_with(tmp_path: Path) -> None:
    write(tmp_path, "a")
    with pytest.raises(DataError, match="given twice"):
        find_files(Inputs(files=(str(tmp_path),), test=(str(tmp_path / "a"),)))


KEYS = (
    *("reviews/a.json", "reviews/b.json.gz", "reviews/2018/c.json", "reviews/_SUCCESS", "reviews/.x/d.json"),
    *("reviews-old/e.json", "reviews/made/dataset.h5", "alone.json", "alone.json.gz", "odd/a[1].json", "odd/a1.json"),
)


@pytest.fixture(scope="module")
def objects(pile: EmbeddedAws) -> None:
    client = boto3.client("s3")
    for key in KEYS:
        client.put_object(Bucket=BUCKET, Key=key, Body=key.encode())
    client.put_object(Bucket=BUCKET, Key="reviews/", Body=b"")


def keys(*given: str, leave_out: str | None = None) -> list[str]:
    inputs = Inputs(files=tuple(f"s3://{BUCKET}/{key}" for key in given))
    return [each.address.removeprefix(f"s3://{BUCKET}/") for each in find_files(inputs, leave_out).files]


@pytest.mark.usefixtures("objects")
def test_an_object_of_s3_is_that_object(tmp_path: Path) -> None:
    (found,) = find_files(Inputs(files=(f"s3://{BUCKET}/alone.json",))).files
    assert (found.address, found.size) == (f"s3://{BUCKET}/alone.json", len("alone.json"))
    assert found.identity == boto3.client("s3").head_object(Bucket=BUCKET, Key="alone.json")["ETag"].strip('"')


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize("given", ["reviews", "reviews/"])
def test_a_prefix_of_s3_is_a_folder(given: str) -> None:
    assert keys(given, leave_out=f"s3://{BUCKET}/reviews/made") == [
        "reviews/2018/c.json",
        "reviews/a.json",
        "reviews/b.json.gz",
    ]


@pytest.mark.usefixtures("objects")
def test_a_pattern_of_s3_is_what_it_matches() -> None:
    assert keys("reviews/*.json*") == ["reviews/a.json", "reviews/b.json.gz"]
    assert keys("reviews*/**/[!ab].json") == ["reviews-old/e.json", "reviews/.x/d.json", "reviews/2018/c.json"]
    assert keys("odd/a[1].json") == ["odd/a[1].json"]
    assert keys("odd/a[0-9].json") == ["odd/a1.json"]


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize(
    ("address", "wrong"),
    [
        (f"s3://{BUCKET}/absent", "nothing at s3://pile/absent; check the address"),
        (f"s3://{BUCKET}/rev", "nothing at s3://pile/rev; check the address"),
        (f"s3://{BUCKET}/*.csv", r"nothing at s3://pile/\*\.csv; check the pattern"),
        ("s3://nobody-has-it/a", "there is no bucket nobody-has-it"),
        ("s3://", "is not an address of S3"),
    ],
)
def test_what_is_not_on_s3_is_named(address: str, wrong: str) -> None:
    with pytest.raises(DataError, match=wrong):
        find_files(Inputs(files=(address,)))


@given(st.text(alphabet="ab/.[]!*?-", max_size=12))
def test_any_text_is_a_pattern_or_none(pattern: str) -> None:
    """No pattern is an error of ours, however its brackets stand."""
    key_pattern(pattern).fullmatch("a/b")
