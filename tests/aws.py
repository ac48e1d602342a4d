"""An embedded AWS that clients in this process, and commands that it starts, ask."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import pytest

from embedded.aws import EmbeddedAws


@contextmanager
def asked_aws(folder: Path) -> Iterator[EmbeddedAws]:
    """An embedded AWS until the end of the block, to which alone this process and its commands then talk."""
    with EmbeddedAws(folder) as running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        patch.setattr(boto3, "DEFAULT_SESSION", None)
        yield running
