"""Tests of the CDK app: its context, and its messages."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from aws_cdk import App
from aws_cdk.assertions import Annotations, Match

import app
from infra import caller
from infra.stack import ShoalStack
from infra.topology_error import TopologyError

ROOT = Path(__file__).resolve().parents[2]


def run_app(out: Path, context: dict[str, str], **environment: str) -> subprocess.CompletedProcess[str]:
    given = {"CDK_CONTEXT_JSON": json.dumps(context), "CDK_OUTDIR": str(out), **environment}
    command = [sys.executable, ROOT / "app.py"]
    return subprocess.run(command, env=os.environ | given, cwd=out, capture_output=True, text=True, check=False)


def built(out: Path, **context: str) -> ShoalStack:
    """Return the app's stack, built in this process."""
    return app.build(App(outdir=str(out), analytics_reporting=False, context={**app.flags(), **context}))


@pytest.mark.parametrize(
    ("context", "sentence"),
    [
        ({}, "No topology is given; add `-c topology=NAME` with one of demo, "),
        ({"topology": "demmo"}, "There is no topology 'demmo' in topologies/; did you mean demo?"),
        ({"topology": "demo", "generation": "0"}, "'0' is not a generation; write a whole number from 1, such as "),
        ({"topology": "demo", "generation": "next"}, "'next' is not a generation; "),
        ({"topology": "demo", "permissions_boundary": "ShoalBoundary"}, "'ShoalBoundary' is not the ARN of a policy; "),
        ({"topology": "demo", "deployment": "my_demo"}, "'my_demo' cannot name a deployment: use at most 40 letters,"),
    ],
)
def test_an_invalid_context_is_refused(tmp_path: Path, context: dict[str, str], sentence: str) -> None:
    with pytest.raises(TopologyError) as refused:
        built(tmp_path, **context)
    assert str(refused.value).startswith(sentence)


def test_deployment_owner_generation_and_boundary_come_from_the_context(tmp_path: Path) -> None:
    boundary = "arn:aws:iam::111122223333:policy/ShoalBoundary"
    (tmp_path / "own.yaml").write_text((ROOT / "topologies" / "demo.yaml").read_text())
    given = {"deployment": "second", "owner": "Ada Lovelace", "generation": "2", "permissions_boundary": boundary}
    done = run_app(tmp_path, {"topology": "own.yaml", **given})
    assert done.returncode == 0, done.stderr
    stack = json.loads((tmp_path / "manifest.json").read_text())["artifacts"]["Shoal-second"]["properties"]
    assert stack["tags"] == {"shoal:deployment": "second", "shoal:topology": "own", "shoal:owner": "Ada-Lovelace"}
    template = (tmp_path / "Shoal-second.template.json").read_text()
    assert '"PreprocessingCluster2' in template
    roles = [each for each in json.loads(template)["Resources"].values() if each["Type"] == "AWS::IAM::Role"]
    assert {each["Properties"].get("PermissionsBoundary") for each in roles} == {boundary}


def test_a_read_only_home_does_not_stop_the_app(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run_app(tmp_path, {"topology": "demmo"}, HOME=str(tmp_path / "file"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("There is no topology 'demmo'")  # after the start of the CDK's library
    assert len(done.stderr.splitlines()) == 1


def test_an_untrusted_folder_for_the_library_is_one_sentence(tmp_path: Path) -> None:
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
        "Shoal cannot unpack the CDK's library: link is a link, so Shoal does not trust it; remove it, or set "
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT to a folder in which you can write\n"
    )


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
def test_aws_is_emulated_if_its_endpoint_is_on_this_machine(endpoint: str | None, emulated: bool) -> None:
    assert caller.emulated(endpoint) is emulated


@pytest.mark.parametrize(
    ("endpoint", "refused"), [("https://ec2.us-east-1.amazonaws.com", True), ("http://127.0.0.1:4566", False)]
)
def test_retired_types_are_accepted_only_with_an_endpoint_on_this_machine(
    tmp_path: Path, endpoint: str, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    stack = built(tmp_path, topology="reference-3g3-1p2")
    said = Annotations.from_stack(stack).find_error("*", Match.string_like_regexp("AWS retired g3.4xlarge"))
    assert bool(said) is refused
