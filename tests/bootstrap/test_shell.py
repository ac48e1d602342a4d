"""Shell scripts that Shoal writes, run by a real bash with hostile names: no name is executed.

Names are validated on entry and also quoted.
"""

import re
import shlex
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shoal_local_aws.nodes import commands

from common import names
from common.errors import ShoalError
from shoal.aws import checked
from shoal.aws.deployment import Deployment
from shoal.aws.fleet import GpuNode
from shoal.backends.nodes import NodesBackend
from tests.bash import Bash

ROOT = Path(__file__).parents[2]
HOSTILE = (
    "$(touch canary)`touch canary`<(touch canary)",
    "x';touch canary;'",
    'x";touch canary;"',
    "x\ntouch canary\n&touch canary|touch canary& a b",
    "}}${IFS}$(touch canary)",
)
NODE = GpuNode(
    instance_id="i-0123456789abcdef0",
    group="fast",
    instance_type="g5.xlarge",
    market="spot",
    zone="us-east-1a",
    address="10.0.1.20",
    gpus=1,
    launched=datetime(2026, 1, 2, tzinfo=UTC),
)
DEPLOYMENT = Deployment(
    name="demo",
    topology="demo",
    session=boto3.Session(region_name="us-east-1"),
    outputs={names.OUTPUT_DATA_BUCKET: "data"},
)
GOOD = {
    "bucket": (checked.bucket, "data"),
    "region": (checked.region, "us-east-1"),
    "instance": (checked.instance, NODE.instance_id),
    "address": (checked.address, NODE.address),
    "run": (checked.run, "demo.20260102T030405-0a1b"),
    "dataset": (checked.dataset, f"datasets/{1:032x}/dataset.h5"),
}


@pytest.mark.parametrize("kind", GOOD)
def test_only_names_that_shoal_writes_are_accepted(kind):
    check, good = GOOD[kind]
    assert check(good) == good
    for wrong in ("", good[:-1] + "!", f"../{good}", f"{good}/..", good.replace("20260102", "2026"), good[:5]):
        if wrong != good:
            with pytest.raises(ShoalError):
                check(wrong)
    assert [names.is_run(each) for each in (GOOD["run"][1], GOOD["dataset"][1], "demo")] == [True, False, False]
    changed = GOOD["dataset"][1].replace("dataset.h5", "other.h5")
    assert [checked.is_dataset(each) for each in (GOOD["dataset"][1], changed, changed[9:])] == [True, False, False]


@given(kind=st.sampled_from(list(GOOD)), at=st.integers(0, 60), cut=st.integers(0, 3), more=st.text(max_size=6))
def test_an_accepted_name_is_a_plain_word_within_its_folder(kind, at, cut, more):
    check, good = GOOD[kind]
    name = good[:at] + more + good[at + cut :]
    try:
        check(name)
    except ShoalError as refused:
        text = str(refused)
    else:
        text = name
        assert shlex.quote(name) == name
        assert ".." not in name.split("/")
        assert not name.startswith(("-", "/", "."))
    assert text.isprintable()


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_of_runs_and_nodes_are_refused(hostile):
    hostiles = [
        lambda: NodesBackend(DEPLOYMENT).new_launch(hostile),
        lambda: NodesBackend(DEPLOYMENT).new_launch(f"demo.{hostile}"),
        lambda: NodesBackend(replace(DEPLOYMENT, outputs={names.OUTPUT_DATA_BUCKET: hostile})),
        lambda: replace(NODE, instance_id=hostile),
        lambda: replace(NODE, address=hostile),
    ]
    for make in hostiles:
        with pytest.raises(ShoalError, match=r"cannot |must be an IPv4 address|is not a valid name for "):
            make()


@pytest.fixture
def bash(tmp_path):
    return Bash(tmp_path)


def test_an_unquoted_name_is_executed_and_this_test_notices(bash):
    bash.run("-c", f"aws {HOSTILE[0]}")
    assert bash.injected()


@pytest.mark.parametrize("hostile", HOSTILE)
def test_first_boot_of_a_gpu_node_executes_no_hostile_value(bash, hostile):
    python = bash.root / "opt" / "pytorch" / "bin" / "python"
    python.write_text(
        f'#!/bin/bash\ncase "$*" in *json*) exec {shlex.quote(sys.executable)} "$@" ;; esac\n'
        f'printf "%s\\0" "$PYTHONPATH" >>{bash.folder}/calls\n'
    )
    python.chmod(0o755)
    bash.add("ec2-metadata", f"printf 'instance-id: %s' {shlex.quote(hostile)}")
    names = ("DEPLOYMENT", "DATA_BUCKET", "SHARE_ID", "CODE_URL", "WHEELS_URL", "AWS_DEFAULT_REGION")
    script = ROOT / "bootstrap" / "gpu" / "boot.sh"
    bash.run(str(script), SHARE_KIND="efs", GPUS="1", **dict.fromkeys(names, hostile))
    assert bash.ended.returncode == 0, bash.ended.stdout
    python.write_text(
        '#!/bin/bash\nprintf "%s\\0" "$PYTHONPATH" "$DEPLOYMENT" "$DATA_BUCKET" "$INSTANCE_ID" "$AWS_DEFAULT_REGION" '
        f'"$@" >{bash.folder}/sees\n'
    )
    (unit,) = (bash.root / "etc" / "systemd" / "system").glob("*.service")
    (line,) = (line for line in unit.read_text().splitlines() if line.startswith("ExecStart="))
    (agent,) = shlex.split(line.removeprefix("ExecStart="))
    bash.run(agent)
    assert not bash.injected()
    path = ":".join(f"{bash.root}/opt/shoal/{each}" for each in ("code", "code/packages/balance", "site"))
    seen = (bash.folder / "sees").read_text().split("\0")[:-1]
    assert seen == [path, hostile, hostile, hostile, hostile, "-m", "bootstrap.node"]
    starts = ["enable", "--now", "shoal-agent.service"]
    assert [word for word in bash.recorded_words() if word in starts] == starts


@pytest.mark.parametrize("hostile", HOSTILE)
def test_commands_of_emulated_nodes_execute_no_path(bash, hostile, monkeypatch):
    hostile_python = bash.folder / hostile / "python"
    hostile_python.parent.mkdir()
    for name in ("aws", "python"):
        (hostile_python.parent / name).write_text("#!/bin/bash\nexit 0\n")
        (hostile_python.parent / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(hostile_python))
    made = bash.folder / "made"
    commands.write_commands(made, file_systems=bash.folder / hostile / "efs", hosts=bash.folder / hostile / "hosts")
    for program, *arguments in (["aws"], ["python3.11"], ["mount", "-t", "efs", "fs-1:/", str(bash.folder / "share")]):
        bash.run(str(made / program), *arguments)
        assert bash.ended.returncode == 0, bash.ended.stderr
    bash.run(str(made / "mount"), "-t", "nfs4", f"{hostile}:{hostile}", "share")
    assert not bash.injected()
    assert (bash.folder / hostile / "efs" / "fs-1").is_dir()


def test_user_data_executes_no_value(bash):
    from infra.training import _user_data

    values = {f"VALUE_{number}": hostile for number, hostile in enumerate(HOSTILE)}
    script = _user_data({**values, "LAST": "'"}, f"s3://{HOSTILE[2]}/boot.sh").render()
    bash.run("-c", re.sub(r'bash "\$\{NODE_ROOT:-\}/tmp/boot.sh"', 'printf "%s\\\\0" "$VALUE_2" >>calls', script))
    assert not bash.injected()
    assert f"s3://{HOSTILE[2]}/boot.sh" in bash.recorded_words()
    assert HOSTILE[2] in bash.recorded_words()
