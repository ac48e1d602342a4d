"""Folder as a store: conditional writes of several writers."""

import os

import pytest

from bootstrap.node.folder import Folder
from tests.bootstrap.node.stores import check_store


def test_a_writer_that_lost_its_lock_writes_nothing(tmp_path):
    class Slow(Folder):
        """Store that loses its lock to another process before it writes."""

        def read(self, key, known=None):
            found = super().read(key, known)
            if key == "a.json":
                Folder(tmp_path).write("a.json.lock", "of another command")
            return found

    folder = Folder(tmp_path)
    assert folder.write_if("a.json", "1", None)
    assert not Slow(tmp_path).write_if("a.json", "2", folder.read("a.json"))
    assert (tmp_path / "a.json").read_text() == "1"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.json", "a.json.lock"]
    (tmp_path / "a.json.lock").unlink()
    assert folder.write_if("a.json", "3", folder.read("a.json"))
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_a_document_is_replaced_only_while_it_is_as_it_was_read(tmp_path):
    check_store(Folder(tmp_path / "store"), Folder(tmp_path / "store"), tmp_path / "file")
    assert [path.name for path in (tmp_path / "store").rglob("*") if path.is_file()] == ["x"]


def test_pipes_and_links_are_neither_listed_nor_read(tmp_path):
    folder = Folder(tmp_path)
    folder.write("runs/a/record.jsonl", "{}")
    os.mkfifo(tmp_path / "runs" / "a" / "summary.json")
    (tmp_path / "runs" / "a" / "node-0.log").symlink_to("/dev/zero")
    assert list(folder.list("runs/")) == ["runs/a/record.jsonl"]
    for name in ("summary.json", "node-0.log"):
        with pytest.raises(OSError, match="pipe or a device"):
            folder.read(f"runs/a/{name}")
