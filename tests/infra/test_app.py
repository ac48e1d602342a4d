"""The app reads its context, and says in one sentence what it cannot build."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra import caller

ROOT = Path(__file__).resolve().parents[2]


def run_app(out: Path, context: dict[str, str], **environment: str) -> subprocess.CompletedProcess[str]:
    given = {"CDK_CONTEXT_JSON": json.dumps(context), "CDK_OUTDIR": str(out), **environment}
    command = [sys.executable, ROOT / "app.py"]
    return subprocess.run(command, env=os.environ | given, cwd=out, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("context", "sentence"),
    [
        ({}, "No topology is given; add `-c topology=NAME` with one of demo, "),
        ({"topology": "demmo"}, "There is no topology 'demmo' in topologies/; did you mean demo?"),
        (
            {"topology": "demo", "generation": "0"},
            "'0' is not a generation; write a whole number from 1, such as `-c generation=2`.",
        ),
        (
            {"topology": "demo", "permissions_boundary": "ShoalBoundary"},
            "'ShoalBoundary' is not a policy; write its ARN, such as ",
        ),
        ({"topology": "demo", "generation": "next"}, "'next' is not a generation; "),
        ({"topology": "demo", "deployment": "my_demo"}, "'my_demo' cannot name a deployment: use at most 40 letters,"),
    ],
)
def test_a_wrong_name_is_one_sentence_without_a_traceback(
    tmp_path: Path, context: dict[str, str], sentence: str
) -> None:
    done = run_app(tmp_path, context)
    assert done.returncode == 1
    assert done.stderr.startswith(sentence)
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout


def test_deployment_owner_generation_and_boundary_come_from_the_context(tmp_path: Path) -> None:
    boundary = "arn:aws:iam::111122223333:policy/ShoalBoundary"
    given = {"deployment": "second", "owner": "Ada Lovelace", "generation": "2", "permissions_boundary": boundary}
    done = run_app(tmp_path, {"topology": "demo", **given})
    assert done.returncode == 0, done.stderr
    stack = json.loads((tmp_path / "manifest.json").read_text())["artifacts"]["Shoal-second"]["properties"]
    assert stack["tags"] == {
        "shoal:deployment": "second",
        "shoal:topology": "demo",
        "shoal:owner": "Ada-Lovelace",
    }
    template = (tmp_path / "Shoal-second.template.json").read_text()
    assert '"PreprocessingCluster2' in template
    roles = [each for each in json.loads(template)["Resources"].values() if each["Type"] == "AWS::IAM::Role"]
    assert {each["Properties"].get("PermissionsBoundary") for each in roles} == {boundary}


def test_a_home_that_cannot_be_written_does_not_stop_the_app(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run_app(tmp_path, {"topology": "demmo"}, HOME=str(tmp_path / "file"))
    assert done.stderr.startswith("There is no topology 'demmo'")  # it came to the CDK's library


def test_a_folder_for_the_library_that_is_not_trusted_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("elsewhere")
    code = f"""
import runpy
from common import private_folders
def of_another(name, alternative):
    return private_folders.make_private_folder(private_folders.Path("link"), alternative)
private_folders.make_users_folder = of_another
runpy.run_path({os.fspath(ROOT / "app.py")!r}, run_name="__main__")
"""
    environment = {**os.environ, "HOME": str(tmp_path / "file")}
    environment.pop("JSII_RUNTIME_PACKAGE_CACHE_ROOT", None)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "The CDK's library cannot be unpacked: link is a link, so Shoal does not trust it; remove it, or set "
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT to another folder\n"
    )


def test_a_topology_of_ones_own_is_built_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text((ROOT / "topologies" / "demo.yaml").read_text())
    done = run_app(tmp_path, {"topology": "own.yaml"})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "Shoal-own.template.json").exists()


@pytest.mark.parametrize(
    ("endpoint", "emulated"),
    [
        (None, False),
        ("http://127.0.0.1:4566", True),
        ("http://LOCALHOST", True),
        ("http://[::1]:4566", True),
        ("http://[::1", False),
        ("https://ec2.us-east-1.amazonaws.com", False),
    ],
)
def test_aws_is_emulated_where_its_endpoint_is_a_url_of_this_machine(endpoint: str | None, emulated: bool) -> None:
    assert caller.emulated(endpoint) is emulated


@pytest.mark.soak
@pytest.mark.parametrize(
    ("endpoint", "refused"),
    [("https://ec2.us-east-1.amazonaws.com", True), ("http://127.0.0.1:4566", False)],
)
def test_only_an_endpoint_on_this_machine_plays_retired_types(tmp_path: Path, endpoint: str, refused: bool) -> None:
    done = run_app(tmp_path, {"topology": "reference-3g3-1p2"}, AWS_ENDPOINT_URL=endpoint)
    assert done.returncode == 0, done.stderr
    said = (
        "".join(path.read_text() for path in tmp_path.glob("*.metadata.json"))
        + (tmp_path / "manifest.json").read_text()
    )
    assert ("AWS retired g3.4xlarge" in said) is refused
