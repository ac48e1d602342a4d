"""A file fits in a head: none of Python that git tracks is longer than 400 lines."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_LINES = 400


def test_no_file_is_longer_than_fits_in_a_head() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [path for path in listed.stdout.splitlines() if (ROOT / path).exists()]
    assert paths
    long = {path for path in paths if len((ROOT / path).read_bytes().splitlines()) > MOST_LINES}
    assert long == set()
