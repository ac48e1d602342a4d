"""The templates of the shipped topologies hold to AWS Solutions' rules and to CloudFormation's own schemas."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from infra import topology
from infra.stack import ShoalStack

SHIPPED = Path(__file__).resolve().parents[2] / "topologies"


@pytest.mark.parametrize("name", topology.names(SHIPPED))
def test_a_shipped_topology_breaks_no_rule_that_is_not_acknowledged(
    name: str, synthesise: Callable[..., ShoalStack], tmp_path: Path
) -> None:
    stack = synthesise(topology.load(name, SHIPPED), tmp_path)
    app = stack.node.root
    assert isinstance(app, App)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with contextlib.suppress(RuntimeError):  # the report says more
        app.synth()
    report = json.loads((tmp_path / "validation-report.json").read_text())
    (rules,) = (each for each in report["pluginReports"] if each["pluginName"] == "AwsSolutions")
    assert not [(each["ruleName"], each["violatingConstructs"]) for each in rules["violations"]]


@pytest.mark.parametrize("name", topology.names(SHIPPED))
def test_a_shipped_topology_is_a_valid_template(
    name: str, synthesise: Callable[..., ShoalStack], tmp_path: Path
) -> None:
    stack = synthesise(topology.load(name, SHIPPED), tmp_path)
    app = stack.node.root
    assert isinstance(app, App)
    app.synth()
    command = [Path(sys.executable).with_name("cfn-lint"), "--non-zero-exit-code", "error", "--"]
    done = subprocess.run([*command, tmp_path / stack.template_file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
