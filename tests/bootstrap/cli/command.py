"""The command `shoal`, as another process."""

import os
import subprocess
from pathlib import Path


def shoal(*arguments: str | Path, given: str | None = None, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["shoal", *map(os.fspath, arguments)],
        capture_output=True,
        text=True,
        input=given,
        env={**os.environ, **environment},
        timeout=300,
        check=False,
    )


ACCOUNT = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
