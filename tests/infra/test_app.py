import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra import caller
from infra.topology_error import TopologyError
from tests.infra.invariants import of_type
from tests.infra.templates import annotations

ROOT = Path(__file__).resolve().parents[2]


def built(out, **context):
    from aws_cdk import App

    import app

    context = {**app.flags(), **context}
    quick = {"analytics_reporting": False, "builtin_cloud_formation_validation": False}
    return app.build(App(outdir=str(out), context=context, **quick))


@pytest.mark.parametrize(
    "context",
    [
        {},
        {"topology": "demmo"},
        {"topology": "demo", "generation": "0"},
        {"topology": "demo", "generation": "next"},
        {"topology": "demo", "permissions_boundary": "ShoalBoundary"},
        {"topology": "demo", "deployment": "my_demo"},
        {"topology": "demo", "zones": "use1-az1,us-east-1b"},
        {"topology": "demo", "retired": "no"},
    ],
    ids=lambda context: " ".join(context.values()) or "nothing",
)
def test_an_invalid_context_is_refused(tmp_path, context, messages):
    with messages.raises(TopologyError):
        built(tmp_path, **context)


def test_deployment_owner_generation_zones_and_boundary_come_from_the_context(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text((ROOT / "topologies" / "demo.yaml").read_text())
    boundary = "arn:aws:iam::111122223333:policy/ShoalBoundary"
    named = {"deployment": "second", "owner": "Ada Lovelace", "generation": "2", "permissions_boundary": boundary}
    named |= {"zones": "use1-az6,use1-az5"}
    built(tmp_path, topology="own.yaml", **named).node.root.synth()
    stack = json.loads((tmp_path / "manifest.json").read_text())["artifacts"]["Shoal-second"]["properties"]
    assert stack["tags"] == {"shoal:deployment": "second", "shoal:topology": "own", "shoal:owner": "Ada-Lovelace"}
    resources = json.loads((tmp_path / "Shoal-second.template.json").read_text())["Resources"]
    assert [name for name in resources if name.startswith("PreprocessingCluster2")]
    subnets = of_type(resources, "AWS::EC2::Subnet").values()
    assert [each["AvailabilityZoneId"] for each in subnets] == ["use1-az6", "use1-az5"]
    roles = of_type(resources, "AWS::IAM::Role").values()
    assert {each.get("PermissionsBoundary") for each in roles} == {boundary}


@pytest.mark.parametrize("library", ["in a temporary folder", "nowhere"])
def test_without_a_writable_home_the_app_is_refused_in_one_sentence(library, tmp_path, messages):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("elsewhere")
    refusing = """
from common import private_folders
def of_another(name, alternative):
    return private_folders.make_private_folder(private_folders.Path("link"), alternative)
private_folders.make_users_folder = of_another
"""
    code = f"import runpy\nrunpy.run_path({os.fspath(ROOT / 'app.py')!r}, run_name='__main__')\n"
    environment = {**os.environ, "HOME": str(tmp_path / "file"), "CDK_CONTEXT_JSON": '{"topology": "demmo"}'}
    environment.pop("JSII_RUNTIME_PACKAGE_CACHE_ROOT", None)
    done = subprocess.run(
        [sys.executable, "-c", refusing + code if library == "nowhere" else code],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    messages.check(done.stderr)


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
def test_aws_is_emulated_if_its_endpoint_is_on_this_machine(endpoint, emulated):
    assert caller.is_local(endpoint) is emulated


@pytest.mark.parametrize(
    ("endpoint", "context", "refusals"),
    [
        ("https://ec2.us-east-1.amazonaws.com", {}, 2),
        ("https://ec2.us-east-1.amazonaws.com", {"retired": "yes"}, 0),
        ("https://ec2.us-east-1.amazonaws.com", {"topology": "demo"}, 0),
        ("http://127.0.0.1:4566", {}, 0),
    ],
    ids=["AWS", "AWS, template", "AWS, current types", "this machine"],
)
def test_retired_types_end_a_synthesis_for_aws_unless_the_context_accepts_them(
    tmp_path, endpoint, context, refusals, monkeypatch
):
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    sentences = annotations(built(tmp_path, **{"topology": "reference-3g3-1p2", **context}))
    assert len([each for each in sentences if "AWS retired" in each]) == len(sentences) == refusals
