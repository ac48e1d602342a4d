"""Simulated nodes of a run: the test controls their programs and their clock."""

import pytest

from tests.bootstrap.node.world import World, request


@pytest.fixture
def world(tmp_path):
    """Two nodes with a shared folder and a request to train."""
    return World(tmp_path, request())
