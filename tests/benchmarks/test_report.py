"""The benchmark of the report's page, on a short record."""

import json
from pathlib import Path

import pytest

from benchmarks import record, report


@pytest.mark.soak
def test_the_page_of_each_record_is_written_and_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record.Log, "folder", tmp_path)
    report.main(["--runs", "1", "--steps", "20", "--ranks", "2", "12"])
    runs = json.loads((tmp_path / "report.json").read_text())["runs"]
    assert [run[:2] for run in runs] == [[20, 2], [20, 12]]
    for _, _, _, opened, (record_bytes, page_bytes) in runs:
        assert all(each["loaded_ms"] > 0 and each["painted_ms"] > 0 for each in opened)
        assert record_bytes > 1000 < page_bytes
