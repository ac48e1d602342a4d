"""A pipe in place of a file is refused at once: its writer may never open it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from common.errors import DataError, ExperimentError, ShoalError
from corpus.dataset import open_dataset
from corpus.reading.storage import open_range
from corpus.text import load_stopwords
from experiments.records import read_run
from infra.topology_error import TopologyError
from shoal.config_file import read_config
from shoal.ssh.hosts_file import read_hosts


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "read",
    [
        read_config,
        read_hosts,
        open_dataset,
        lambda pipe: open_range(str(pipe)),
        lambda pipe: load_stopwords(str(pipe), "letters"),
        lambda pipe: read_run(pipe.parent),
    ],
    ids=["options and topologies", "hosts", "a dataset", "any input", "stopwords", "a record"],
)
def test_a_pipe_is_refused_by_its_name(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    pipe = tmp_path / "record.jsonl"
    os.mkfifo(pipe)
    with pytest.raises((DataError, ExperimentError, ShoalError, TopologyError), match=rf"{pipe}.* is a pipe"):
        read(pipe)


def test_an_endless_device_is_refused_as_a_file_of_hosts() -> None:
    with pytest.raises(ShoalError, match="a device"):
        read_hosts(Path("/dev/zero"))
