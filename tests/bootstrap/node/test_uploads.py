"""Files of a run are copied as they change. Files that disappear with their folder are not removed from the bucket."""

import errno
import shutil
from pathlib import Path

import pytest

from bootstrap.node.folder import Folder
from bootstrap.node.uploads import Uploads

OLD, NEW = "checkpoints/step-000000010.pt", "checkpoints/step-000000020.pt"


class Run:
    """Folder of a run, and its copy in the bucket."""

    def __init__(self, root):
        self.folder, self.bucket = root / "run", Folder(root / "bucket")
        self.uploads = Uploads(self.folder, self.bucket, "runs/a/", "attempts/2.json")
        for name in ("record.jsonl", OLD, ".hidden", "x.partial", "node-0.log"):
            self.write(name)
        self.uploads.sync()

    def write(self, name):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)

    def copied(self):
        return [key.removeprefix("runs/a/") for key in self.bucket.list("runs/a/")]


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path)


def test_temporary_files_and_logs_are_not_copied(run):
    assert run.copied() == [OLD, "record.jsonl"]
    run.uploads.copy(run.folder / "node-0.log", "node-0.log")
    run.uploads.sync()
    assert run.copied() == [OLD, "node-0.log", "record.jsonl"]


def test_a_checkpoint_that_a_newer_one_has_replaced_is_removed(run):
    run.write(NEW)
    (run.folder / OLD).unlink()
    run.uploads.sync()
    assert run.copied() == [NEW, "record.jsonl"]


@pytest.mark.parametrize("gone", ["", "checkpoints"])
def test_nothing_is_removed_if_the_folder_is_missing(run, gone):
    shutil.rmtree(run.folder / gone)
    run.uploads.sync()
    assert run.copied() == [OLD, "record.jsonl"]


def test_only_changed_files_are_copied_again(run):
    run.bucket.remove(f"runs/a/{OLD}")
    run.bucket.remove("runs/a/record.jsonl")
    (run.folder / "record.jsonl").write_text("more")
    run.uploads.sync()
    assert run.copied() == ["record.jsonl"]


def test_an_older_attempt_replaces_no_file_of_a_newer_one(run):
    run.bucket.write("attempts/2.json", "{}")
    run.write(NEW)
    (run.folder / OLD).unlink()
    (run.folder / "record.jsonl").write_text("of the older attempt")
    run.uploads.sync()
    run.uploads.copy(run.folder / "node-0.log", "node-0.log")
    assert run.copied() == [OLD, "record.jsonl"]
    assert run.bucket.read("runs/a/record.jsonl").text == "record.jsonl"


def test_a_failed_copy_leaves_no_file(run, monkeypatch):
    def fails(_, destination):
        Path(destination).write_text("half")
        raise OSError(errno.ENOSPC, "the disk is full")

    before = sorted(run.bucket.list(""))
    monkeypatch.setattr(shutil, "copyfile", fails)
    with pytest.raises(OSError, match="full"):
        run.bucket.put(run.folder / "record.jsonl", "runs/a/other")
    assert sorted(run.bucket.list("")) == before
    assert list(Path(run.bucket.name).rglob("*.partial")) == []
