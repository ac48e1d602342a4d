"""A name that ministack no longer has is reported."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from shoal_local_aws.emulator_error import EmulatorError
from shoal_local_aws.seams.lookup import WRITTEN_FOR, MinistackModule, Operations, Seam

ROOT = Path(__file__).resolve().parents[2]
FOR = f"it was written for ministack {re.escape(WRITTEN_FOR)}"


def importing(seam: str, before: str) -> str:
    """The last line of what Python says that imports a module of `shoal_local_aws.seams` after other statements."""
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
        ("ec2", "services.ec2", "_subnets"),
        ("cloudformation", "services.cloudformation.handlers", "_delete_stack_async"),
        ("routing", "core.router", "SERVICE_PATTERNS"),
    ],
)
def test_a_name_that_is_gone_is_said_at_the_import(seam, module, name):
    said = importing(seam, f"import ministack.{module} as module; del module.{name}")
    assert re.search(rf"has no ministack\.{module}\.{name}, .*{FOR}\b", said)
    assert "shoal_local_aws/seams" in said


def test_an_operation_that_is_gone_is_said_when_it_is_to_be_wrapped():
    operations = Operations(MinistackModule("services.emr"), "_HANDLERS")
    with pytest.raises(EmulatorError, match=rf"no ministack\.services\.emr\._HANDLERS\['RunJobFlows'\], .*{FOR}"):
        operations.wrap("RunJobFlows", lambda operation: operation)


def test_a_seam_is_put_in_all_its_places_and_one_that_lacks_it_is_said():
    stacks, handlers = (MinistackModule(f"services.cloudformation.{name}") for name in ("stacks", "handlers"))
    seam: Seam[object] = Seam("_delete_stack_async", stacks, handlers)
    before = seam.now
    try:
        seam.put("another")
        assert stacks.take("_delete_stack_async") == handlers.take("_delete_stack_async") == seam.now == "another"
    finally:
        seam.put(before)
    with pytest.raises(EmulatorError, match=r"services\.emr\._delete_stack_async"):
        Seam("_delete_stack_async", stacks, MinistackModule("services.emr"))


def test_the_seams_are_written_for_the_version_that_is_installed():
    assert version("ministack") == WRITTEN_FOR
    assert (
        f"ministack=={WRITTEN_FOR}" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    )


def test_nothing_but_the_seams_names_a_module_of_ministack():
    """The import contracts see imports only; this test also sees modules that are named in strings."""
    named = re.compile(r"ministack\.(app|core|services)|import ministack|from ministack")
    naming = {path for path in (ROOT / "shoal_local_aws").rglob("*.py") if named.search(path.read_text())}
    assert not [path for path in naming if path.parent.name != "seams"]
