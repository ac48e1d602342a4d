"""Files that bootstrap/preprocessing/emr/install.sh leaves on a node, with stubs for the real programs."""

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

SCRIPT = Path(__file__).parents[3] / "bootstrap" / "preprocessing" / "emr" / "install.sh"
# Creates a virtual environment with a `python` that prints its arguments and works until the file $AWAITED exists.
PYTHON = r"""
[ "$2" = venv ] || exit 0
home=${!#}
mkdir -p "$home/bin"
cat >"$home/bin/python" <<'RUN'
#!/bin/bash
env
for moment in $(seq ${MOMENTS:-0}); do [ -e "$AWAITED" ] || sleep 0.05; done
RUN
chmod +x "$home/bin/python"
"""


class Node:
    """Node without a configured region; `fetching` is the environment of the AWS CLI during the installation."""

    def __init__(self, folder):
        self.root, self._folder, commands = folder / "node", folder, folder / "commands"
        commands.mkdir()
        for name, body in {"aws": f"env >>{folder}/aws", "python3.11": PYTHON}.items():
            (commands / name).write_text(f"#!/bin/bash\n{body}\n")
            (commands / name).chmod(0o755)
        code = self.root / "opt" / "shoal" / "code" / SCRIPT.parent.relative_to(SCRIPT.parents[3])
        code.mkdir(parents=True)
        shutil.copy(SCRIPT.with_name("preprocess.sh"), code)
        environment = {"PATH": f"{commands}:{os.environ['PATH']}", "NODE_ROOT": str(self.root)}
        command = ["bash", SCRIPT, "s3://cdk/code.zip", "s3://cdk/wheels.zip", "eu-west-1"]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        self.fetching = _variables((folder / "aws").read_text())

    def python(self, name="shoal-python", **environment):
        """Run Shoal's Python by one of its commands, and return the environment that it had."""
        command = [self.root / "usr" / "local" / "bin" / name]
        environment |= {"PATH": os.environ["PATH"]}
        process = subprocess.Popen(
            command, cwd=self._folder, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        printed, _ = process.communicate(timeout=PATIENCE)  # background processes hold none of its pipes
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == 0
        return _variables(printed)


def _variables(text):
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_each_script_that_calls_aws_has_the_region(node):
    for environment in (node.fetching, node.python(), node.python("shoal-step")):
        assert (environment.get("AWS_REGION"), environment.get("AWS_DEFAULT_REGION")) == ("eu-west-1", "eu-west-1")


def test_only_work_outside_of_yarn_reports_to_emr_that_the_cluster_is_busy(node):
    busy = node.root / "emr" / "metricscollector" / "isbusy"
    busy.parent.mkdir(parents=True)
    node.python(CONTAINER_ID="container_1", MOMENTS="10", AWAITED=str(busy))
    node.python("shoal-step", MOMENTS="10", AWAITED=str(busy))
    assert not busy.exists()
    node.python(MOMENTS="1000", AWAITED=str(busy))
    assert busy.exists()


def test_a_container_of_yarn_copies_the_compiled_code_and_other_processes_use_the_large_disk(node, tmp_path):
    compiled = node.root / "opt" / "shoal" / "compiled"
    compiled.mkdir(exist_ok=True)
    (compiled / "a.nbi").touch()
    (node.root / "mnt" / "tmp").mkdir(parents=True)
    outside, container = node.python(PYTHONPATH="/spark/python"), node.python(CONTAINER_ID="container_7")
    assert outside["NUMBA_CACHE_DIR"] == str(compiled)
    assert outside["TMPDIR"] == str(node.root / "mnt" / "tmp")
    assert outside["PYTHONPATH"] == f"{node.root}/opt/shoal/code:/spark/python"
    assert {outside[f"AWS_METADATA_SERVICE_{name}"] for name in ("TIMEOUT", "NUM_ATTEMPTS")} == {"5"}
    copy = Path(container["NUMBA_CACHE_DIR"])
    assert (copy.parent, [path.name for path in copy.iterdir()]) == (tmp_path, ["a.nbi"])
    assert container["TMPDIR"] == str(tmp_path)
    assert node.python(TMPDIR="/mnt/yarn")["TMPDIR"] == "/mnt/yarn"
