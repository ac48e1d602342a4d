"""Fixture that runs programs on several ranks of this machine."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
Run = Callable[..., str]


@pytest.fixture(scope="session")
def run_on_ranks():
    """Return a function that runs a program of the package on several ranks, with arguments and environment variables,
    and returns the program's output."""

    def run(ranks, program, *arguments, **environment):
        torchrun = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}") if ranks > 1 else ()
        path = os.pathsep.join(filter(None, (str(PACKAGE), os.environ.get("PYTHONPATH"))))
        done = subprocess.run(
            [sys.executable, *torchrun, PACKAGE / program, *arguments],
            env={**os.environ, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def train(run_on_ranks):
    """Return a function that trains on several ranks with a program of the tests, and returns the results."""

    def trained(ranks, output, program="program", **options):
        run_on_ranks(ranks, f"tests/{program}.py", json.dumps({"output": str(output), **options}))
        return dict(json.loads(output.with_suffix(".json").read_text()))

    return trained
