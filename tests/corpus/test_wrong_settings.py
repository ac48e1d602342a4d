"""The invalid settings of datasets and streams in `wrong_settings.yaml` are refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.stream.stream_settings import StreamSettings, read_settings
from jobs.job_settings import read_settings as read_options
from tests.corpus.reading.inputs.beginnings import tuples
from tests.jobs.test_job_settings import parsed

ROWS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("wrong_settings.yaml").read_text())


def read(row: dict[str, Any], folder: Path) -> object:
    values = row["values"]
    if row["of"] == "dataset":
        return Settings(**tuples(values))
    if row["of"] == "options":
        return read_options(parsed(*values))
    if row["of"] == "stream":
        return StreamSettings(**{"sources": ("/texts",), **tuples(values)})
    # The content of a settings file; each character stands for one byte.
    (folder / "stream.json").write_bytes(values.encode("latin-1"))
    return read_settings(folder)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['of']} {row['values']}")
def test_invalid_settings_are_refused(tmp_path: Path, row: dict[str, Any], messages) -> None:
    with messages.raises(DataError):
        read(row, tmp_path)
