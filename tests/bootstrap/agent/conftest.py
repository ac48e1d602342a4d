"""The nodes of a run, whose programs and clock a test plays."""

from pathlib import Path

import pytest

from tests.bootstrap.agent.world import World, request


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two nodes that share a folder, of which each has been asked to train."""
    return World(tmp_path, request())
