"""Python files are short: git tracks none of more than 400 lines."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_LINES = 400


def test_python_files_have_at_most_400_lines() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [path for path in listed.stdout.splitlines() if (ROOT / path).exists()]
    assert paths
    long = {path for path in paths if len((ROOT / path).read_bytes().splitlines()) > MOST_LINES}
    assert long == set()
