"""Scripts that bootstrap/emr/install.sh leaves on a node, with fake programs: they execute no name."""

import shutil
from pathlib import Path

import pytest

from tests.bash import Bash
from tests.bootstrap.test_shell import HOSTILE

ROOT = Path(__file__).parents[3]
SCRIPTS = Path("bootstrap", "emr")
# Creates a virtual environment with a `python` that prints its environment and works until the file $AWAITED exists.
PYTHON = r"""
[ "$2" = venv ] || exit 0
home=${!#}
mkdir -p "$home/bin"
cat >"$home/bin/python" <<'RUN'
#!/bin/bash
env -0
for moment in $(seq ${MOMENTS:-0}); do [ -e "$AWAITED" ] || /bin/sleep 0.05; done
RUN
chmod +x "$home/bin/python"
"""


class Node:
    """Node below a folder of this name, which is also its region and the addresses of its code and libraries.

    `fetching` is the environment of the AWS CLI during the installation.
    """

    def __init__(self, folder, name):
        self.bash, self.name, self.root = Bash(folder), name, folder / name
        self.bash.add("aws", f"env -0 >>{folder}/fetching")
        self.bash.add("python3.11", PYTHON)
        self.bash.add("sleep", "exec /bin/sleep 0.05")
        code = self.root / "opt" / "shoal" / "code" / SCRIPTS
        code.mkdir(parents=True)
        shutil.copy(ROOT / SCRIPTS / "preprocess.sh", code)
        self._run(ROOT / SCRIPTS / "install.sh", name, name, name)
        self.fetching = _variables((folder / "fetching").read_text())

    def python(self, command="shoal-python", *words, **environment):
        """Run Shoal's Python by one of its commands, and return the environment that it had."""
        self._run(self.root / "usr" / "local" / "bin" / command, *words, **environment)
        return _variables(self.bash.ended.stdout)

    def _run(self, script, *words, **environment):
        self.bash.run(str(script), *words, **{"NODE_ROOT": str(self.root), **environment})
        assert self.bash.ended.returncode == 0, self.bash.ended.stderr


def _variables(text):
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


@pytest.fixture(params=["eu-west-1", *HOSTILE])
def node(request, tmp_path):
    made = Node(tmp_path, request.param)
    yield made
    assert not made.bash.injected()


def test_each_script_that_calls_aws_has_the_region(node):
    for environment in (node.fetching, node.python(), node.python("shoal-step", node.name)):
        assert (environment.get("AWS_REGION"), environment.get("AWS_DEFAULT_REGION")) == (node.name, node.name)
    assert node.bash.recorded_words().count(node.name) == 2  # the addresses that the AWS CLI got


def test_only_work_outside_of_yarn_reports_to_emr_that_the_cluster_is_busy(node):
    busy = node.root / "emr" / "metricscollector" / "isbusy"
    busy.parent.mkdir(parents=True)
    node.python(CONTAINER_ID="container_1", MOMENTS="4", AWAITED=str(busy))
    node.python("shoal-step", MOMENTS="4", AWAITED=str(busy))
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
