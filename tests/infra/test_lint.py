"""Tests that the templates comply with AWS Solutions' rules, CloudFormation's schemas, and checkov.

`make lint` runs these. A finding that is right is fixed; one that is not is acknowledged where the choice is made, with
its reason (`packages/guard/shoal_guard/grants.py`).
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.infra.variants import SHIPPED, TOPOLOGIES

pytestmark = pytest.mark.lint

# A separate environment, because checkov needs another boto3 than the emulator.
CHECKOV = Path(sys.prefix) / "checkov" / "bin" / "checkov"


@pytest.fixture(scope="session")
def assembly(tmp_path_factory, root):
    """Return the assembly of all topologies with the report of AWS Solutions' rules."""
    from aws_cdk import App, Validations
    from cdk_nag import AwsSolutionsChecks

    from app import flags
    from infra.stack import ShoalStack

    out = tmp_path_factory.mktemp("assembly")
    app = App(outdir=str(out), analytics_reporting=False, context=flags())
    for spec in TOPOLOGIES:
        ShoalStack(app, spec=spec, deployment=spec.name, owner="ada", generation=1, root=root, emulated=True)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with contextlib.suppress(RuntimeError):  # the report has the details
        app.synth()
    return out


@pytest.fixture(scope="session")
def templates(assembly):
    found = sorted(assembly.glob("*.template.json"))
    assert len(found) == len(TOPOLOGIES)
    return found


def test_all_findings_of_aws_solutions_are_acknowledged(assembly):
    report = json.loads((assembly / "validation-report.json").read_text())
    (rules,) = (each for each in report["pluginReports"] if each["pluginName"] == "AwsSolutions")
    assert not [(each["ruleName"], each["violatingConstructs"]) for each in rules["violations"]]


def test_the_validation_of_the_cdk_finds_nothing(assembly, tmp_path):
    from aws_cdk import App, Stack
    from aws_cdk.aws_s3 import CfnBucket

    assert found_by_the_cdk(assembly) == []
    wrong = App(outdir=str(tmp_path), analytics_reporting=False)
    CfnBucket(Stack(wrong, "Wrong"), "Bucket").add_property_override("AccessControl", "Nobody")
    wrong.synth()
    assert found_by_the_cdk(tmp_path) != []


def found_by_the_cdk(assembly):
    """Return the findings in the CDK's report, which omits an empty list."""
    report = json.loads((assembly / "validation-report.json").read_text())
    found = [each for each in report["pluginReports"] if each["pluginName"] == "CloudFormation Validate"]
    return [(each["ruleName"], each["violatingConstructs"]) for one in found for each in one["violations"]]


def test_the_templates_are_valid(templates):
    # W3005: the CDK also writes dependencies that follow from references, which is harmless. W3010: a topology may
    # name its zone.
    options = ["--ignore-checks", "W3005,W3010", "--non-zero-exit-code", "warning", "--"]
    command = [Path(sys.executable).with_name("cfn-lint"), *options, *templates]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_findings_of_checkov_are_acknowledged(templates):
    command = [CHECKOV, "--framework", "cloudformation", "--skip-download", "--output", "json", "--file", *templates]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    results = json.loads(done.stdout)["results"]
    assert not [(each["check_id"], each["check_name"], each["resource"]) for each in results["failed_checks"]]
    assert not results["parsing_errors"]
    assert len(results["passed_checks"]) > 100 * len(templates)


def test_no_feature_flag_of_the_cdk_is_unset(tmp_path):
    command = ["cdk", "flags", "--unstable=flags", "--output", tmp_path, "-c", "topology=embeddings-1gpu"]
    done = subprocess.run(command, cwd=SHIPPED.parent, capture_output=True, text=True, check=True)
    assert "Unconfigured feature flags" in done.stdout + done.stderr
    assert "<unset>" not in done.stdout + done.stderr
