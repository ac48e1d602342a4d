"""The contract of a store of documents and files: a folder, a folder of hosts, or a bucket."""


def check_store(first, second, path):
    """Check an empty store, as two commands see it. The file at `path` is written."""
    assert (first.read("requests/a.json"), first.size("runs/a/x"), first.read_from("runs/a/x", 0, 9)) == (
        None,
        None,
        b"",
    )
    assert first.write_if("requests/a.json", "1", None)
    assert not second.write_if("requests/a.json", "2", None)
    known = second.read("requests/a.json")
    assert first.write_if("requests/a.json", "3", first.read("requests/a.json"))
    assert not second.write_if("requests/a.json", "4", known)
    assert second.read("requests/a.json").text == "3"
    assert list(first.list("requests/a")) == ["requests/a.json"]
    known = second.read("requests/a.json")
    first.remove("requests/a.json")
    assert second.read("requests/a.json") is None
    assert not second.write_if("requests/a.json", "5", known)
    path.write_bytes(b"0123456789")
    first.put(path, "runs/a/x")
    assert (second.size("runs/a/x"), second.read_from("runs/a/x", 8, 99)) == (10, b"89")
    second.get("runs/a/x", path.parent / "below" / "copy")
    assert (path.parent / "below" / "copy").read_bytes() == b"0123456789"
