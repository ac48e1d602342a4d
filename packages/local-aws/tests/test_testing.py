"""The fixture `shoal_aws`, as users have it who install only this package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import boto3
import pytest
from shoal_local_aws.account import local_aws

PACKAGE = Path(__file__).parents[1]
EXAMPLE, README = PACKAGE / "examples" / "test_emr_steps.py", PACKAGE / "README.md"


@pytest.mark.soak
def test_the_examples_tests_pass_in_another_folder(tmp_path):
    shutil.copy(EXAMPLE, tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_emr_steps.py"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(command, cwd=tmp_path, env=plain, capture_output=True, text=True, check=False)
    assert re.search(r"\b1 passed\b", done.stdout), done.stdout + done.stderr


def test_the_environment_is_restored(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    before = dict(os.environ)
    with local_aws(tmp_path) as running:
        assert os.environ["AWS_ENDPOINT_URL"] == running.endpoint
        assert boto3.client("sts").get_caller_identity()["Account"] == "000000000000"
    assert dict(os.environ) == before


def test_the_readmes_fault_example_works_without_pytest(tmp_path):
    _, example = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    code = f"import sys; sys.modules['pytest'] = None\n{example}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert re.search(r"\(AccessDenied\) when calling the CreateBucket", done.stderr), done.stderr


def test_local_aws_has_emrs_default_roles(tmp_path):
    with local_aws(tmp_path):
        names = {role["RoleName"] for role in boto3.client("iam").list_roles()["Roles"]}
    assert {"EMR_DefaultRole", "EMR_EC2_DefaultRole"} <= names


def test_a_test_run_without_the_fixture_does_not_load_the_emulator(tmp_path):
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n\ndef test_nothing():\n"
        "    assert not {'boto3', 'ministack', 'shoal_local_aws.aws', 'torch'} & set(sys.modules)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_nothing.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
