import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from shoal_local_aws.emulator_error import EmulatorError
from shoal_local_aws.seams.lookup import WRITTEN_FOR, MinistackModule, Operations

ROOT = Path(__file__).resolve().parents[2]


def importing(seam, before):
    """Run statements, import a module of `shoal_local_aws.seams`, and return the last line of the error."""
    run = subprocess.run(
        [sys.executable, "-c", f"{before}\nimport shoal_local_aws.seams.{seam}"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert run.returncode == 1
    return run.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("seam", "module", "name"),
    [
        ("emr", "services.emr", "_make_step"),
        ("cloudformation", "services.cloudformation.handlers", "_delete_stack_async"),
    ],
)
def test_a_missing_name_fails_the_import_with_its_name(seam, module, name, messages):
    messages.hide(WRITTEN_FOR, "VERSION")
    messages.check(importing(seam, f"import ministack.{module} as module; del module.{name}"))


def test_wrapping_a_missing_operation_names_it(messages):
    messages.hide(WRITTEN_FOR, "VERSION")
    operations = Operations(MinistackModule("services.emr"), "_HANDLERS")
    with messages.raises(EmulatorError):
        operations.wrap("RunJobFlows", lambda operation: operation)


def test_the_pinned_ministack_version_is_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert version("ministack") == WRITTEN_FOR
    assert f"ministack=={WRITTEN_FOR}" in project["dependencies"]


def test_only_seams_names_modules_of_ministack():
    """The import contracts check only imports. This test also finds module names in strings."""
    named = re.compile(r"ministack\.(app|core|services)|import ministack|from ministack")
    naming = {path for path in (ROOT / "shoal_local_aws").rglob("*.py") if named.search(path.read_text())}
    assert not [path for path in naming if path.parent.name != "seams"]
