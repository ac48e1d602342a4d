"""Local addresses and S3 addresses stand for the files that `finding.yaml` lists."""

import os
from operator import itemgetter
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

from common.errors import DataError
from corpus.reading.inputs.finding import check_sources, find_files
from corpus.reading.sources import Inputs

TABLE = yaml.safe_load(Path(__file__).with_name("finding.yaml").read_text())
USES = ("test", "positive", "negative")


def build(folder: Path, tree: list[Any]) -> None:
    """Create the entries of a tree: `name` is a file, `name -> target` a link, `name|` a pipe, and `name/` a folder."""
    for entry in tree:
        name, content = next(iter(entry.items())) if isinstance(entry, dict) else (entry, "x\n")
        name, _, target = name.partition(" -> ")
        path = folder / name.rstrip("|")
        path.parent.mkdir(parents=True, exist_ok=True)
        if target:
            path.symlink_to(target)
        elif name.endswith("|"):
            os.mkfifo(path)
        elif name.endswith("/"):
            path.mkdir()
        else:
            path.write_text(content)


def found_page(home: str, case: dict[str, Any], messages) -> dict[str, Any]:
    """Return the files that a case finds below a folder or bucket, and check the warnings, or the error's message."""
    addresses = {use: tuple(f"{home}/{each}" for each in case.get(use, [])) for use in USES}
    leave_out = f"{home}/{case['leave_out']}" if "leave_out" in case else None
    files = tuple(f"{home}/{each}" for each in case.get("given", []))
    inputs = Inputs(files=files, **addresses, exclude=tuple(case.get("exclude", ())))
    try:
        files, warnings = find_files(inputs, leave_out)
    except DataError as error:
        messages.check(error)
        return {"refused": True}
    for note in warnings:
        messages.check(note)
    shown = {}
    for each in files:
        packed = [each.compression, each.plain_size] if each.compression else []
        uses = [*(["test"] if each.test else []), *([each.code] if each.code is not None else [])]
        shown[each.address.removeprefix(f"{home}/")] = [each.size, *packed, *uses]
    return {"files": shown}


@pytest.fixture(scope="module")
def objects(pile) -> None:
    for key in TABLE["objects"]:
        boto3.client("s3").put_object(Bucket="pile", Key=key, Body=b"" if key.endswith("/") else key.encode())


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize("case", TABLE["cases"], ids=itemgetter("case"))
def test_files_are_listed_in_order_or_refused_with_a_message(tmp_path, case, messages) -> None:
    build(tmp_path, case.get("tree", []))
    page = found_page("s3://pile" if "s3" in case else str(tmp_path.resolve()), case, messages)
    assert page == case["found"]
    assert [*page.get("files", {})] == [*case["found"].get("files", {})]


@pytest.mark.usefixtures("pile")
@pytest.mark.parametrize("address", ["s3://nobody-has-it/a", "s3://"])
def test_a_missing_bucket_is_named(address, messages) -> None:
    with messages.raises(DataError):
        find_files(Inputs(files=(address,)))


@pytest.mark.usefixtures("objects")
def test_an_s3_address_of_an_object_gives_that_object() -> None:
    ((found,), _) = find_files(Inputs(files=("s3://pile/alone.json",)))
    assert found.identity == boto3.client("s3").head_object(Bucket="pile", Key="alone.json")["ETag"].strip('"')


def test_a_text_stream_names_hidden_files_and_refuses_compressed_copies(tmp_path, messages) -> None:
    build(tmp_path, ["a.txt", "_b.txt"])
    (note,) = check_sources([str(tmp_path)])
    messages.check(note)
    build(tmp_path, ["a.txt.gz"])
    with messages.raises(DataError):
        check_sources([str(tmp_path)])


def test_a_changed_file_has_another_identity(tmp_path) -> None:
    build(tmp_path, ["a"])
    before = find_files(Inputs(files=(str(tmp_path),)))
    os.utime(tmp_path / "a", ns=(1, 1))
    assert find_files(Inputs(files=(str(tmp_path),))) != before


def test_a_name_that_is_not_utf8_is_refused(tmp_path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")
    Path(name).write_bytes(b"x")
    with pytest.raises(DataError, match=r"\\xff\.json' is not UTF-8"):
        find_files(Inputs(files=(name,)))
