"""Runs scripts on emulated nodes, in the environment that the node's own processes have."""

import os
import subprocess
from pathlib import Path

from shoal_local_aws.processes import marked_processes


def run(root: Path, script: str) -> "subprocess.CompletedProcess[str]":
    """Run a script on the node with this folder as `/`; a process of its boot must run."""
    process = marked_processes("NODE_ROOT", str(root))[0]
    variables = Path(f"/proc/{process}/environ").read_bytes().decode().rstrip("\0").split("\0")
    command = ["taskset", "--cpu-list", ",".join(map(str, os.sched_getaffinity(process))), "bash", "-c", script]
    environment = dict(variable.split("=", 1) for variable in variables)
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
