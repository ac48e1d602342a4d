"""What a run writes is copied as it changes, and nothing is removed because it cannot be seen."""

import errno
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from bootstrap.agent.folder import Folder
from bootstrap.agent.uploads import Uploads

OLD, NEW = "checkpoints/step-000000010.pt", "checkpoints/step-000000020.pt"


class Run:
    """The folder of a run, and what the bucket has of it."""

    def __init__(self, root: Path) -> None:
        self.folder, self.bucket = root / "run", Folder(root / "bucket")
        self.uploads = Uploads(self.folder, self.bucket, "runs/a/", "attempts/2.json")
        for name in ("record.jsonl", OLD, ".hidden", "x.partial", "node-0.log"):
            self.write(name)
        self.uploads.sync()

    def write(self, name: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)

    def there(self) -> list[str]:
        return [key.removeprefix("runs/a/") for key in self.bucket.list("runs/a/")]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_what_is_on_its_way_or_copied_by_each_node_itself_is_left_out(run: Run) -> None:
    assert run.there() == [OLD, "record.jsonl"]
    run.uploads.copy(run.folder / "node-0.log", "node-0.log")
    run.uploads.sync()
    assert run.there() == [OLD, "node-0.log", "record.jsonl"]


def test_a_checkpoint_that_a_newer_one_has_replaced_is_removed(run: Run) -> None:
    run.write(NEW)
    (run.folder / OLD).unlink()
    run.uploads.sync()
    assert run.there() == [NEW, "record.jsonl"]


@pytest.mark.parametrize("gone", ["", "checkpoints"])
def test_of_a_folder_that_is_gone_nothing_is_removed(run: Run, gone: str) -> None:
    shutil.rmtree(run.folder / gone)
    run.uploads.sync()
    assert run.there() == [OLD, "record.jsonl"]


def test_only_what_has_changed_is_copied_again(run: Run) -> None:
    run.bucket.remove(f"runs/a/{OLD}")
    run.bucket.remove("runs/a/record.jsonl")
    (run.folder / "record.jsonl").write_text("more")
    run.uploads.sync()
    assert run.there() == ["record.jsonl"]


def test_what_an_older_attempt_leaves_replaces_nothing_of_a_newer_one(run: Run) -> None:
    run.bucket.write("attempts/2.json", "{}")
    run.write(NEW)
    (run.folder / OLD).unlink()
    (run.folder / "record.jsonl").write_text("of the older attempt")
    run.uploads.sync()
    run.uploads.copy(run.folder / "node-0.log", "node-0.log")
    assert run.there() == [OLD, "record.jsonl"]
    found = run.bucket.read("runs/a/record.jsonl")
    assert found is not None
    assert found.text == "record.jsonl"


def test_of_a_file_that_cannot_be_copied_whole_nothing_is_left(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: str, there: str) -> NoReturn:
        Path(there).write_text("half")
        raise OSError(errno.ENOSPC, "the disk is full")

    before = sorted(run.bucket.list(""))
    monkeypatch.setattr(shutil, "copyfile", fails)
    with pytest.raises(OSError, match="full"):
        run.bucket.put(run.folder / "record.jsonl", "runs/a/other")
    assert sorted(run.bucket.list("")) == before
    assert list(Path(run.bucket.name).rglob("*.partial")) == []
