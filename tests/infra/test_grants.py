"""What roles may do is held against what they were seen to need."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from embedded.permissions.record import ALLOWED, FILE, Check
from infra.roles import UNEXERCISED
from tests.infra.grants import mistaken_grants, needed_by_none
from tests.infra.replay import is_allowed

OBJECTS, OTHERS = "arn:aws:s3:::own/runs/*", "arn:aws:s3:::own/others/*"
WHO = "arn:aws:sts::000000000000:assumed-role/Shoal-x-Role1-ABC/i-1"


def statement(actions: list[str], resources: list[str], **conditions: Any) -> dict[str, Any]:
    return {
        "sid": "",
        "effect": "Allow",
        "actions": actions,
        "not_actions": [],
        "resources": resources,
        "not_resources": [],
        "conditions": conditions,
    }


def mistakes(folder: Path, *policy: dict[str, Any], reasons: dict[str, str] | None = None) -> list[str]:
    asked = Check(WHO, "s3:GetObject", "arn:aws:s3:::own/runs/1", ALLOWED)
    lines = [{"who": "assumed-role/Shoal-x-Role1-ABC", "policies": [list(policy)]}, asdict(asked)]
    (folder / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    own = {
        "Type": "AWS::IAM::Policy",
        "Properties": {"Roles": [{"Ref": "Role1"}]},
        "Metadata": {UNEXERCISED: reasons or {}},
    }
    return list(mistaken_grants({"Resources": {"Policy": own}}, folder, stack="Shoal-x", roles={"Role1"}))


def test_what_is_needed_is_no_mistake(tmp_path: Path) -> None:
    assert mistakes(tmp_path, statement(["s3:GetObject"], [OBJECTS])) == []


@pytest.mark.parametrize(
    ("policy", "grant"),
    [
        ([statement(["s3:GetObject", "s3:PutObject"], [OBJECTS])], "s3:PutObject"),
        ([statement(["s3:GetObject"], [OBJECTS, OTHERS])], OTHERS),
        ([statement(["s3:GetObject"], [OBJECTS]), statement(["kms:Decrypt"], ["*"])], "kms:Decrypt"),
        ([statement(["s3:GetObject"], [OBJECTS]), statement(["s3:*"], ["*"])], "s3:*"),
    ],
)
def test_what_nothing_needs_is_named_unless_a_reason_explains_it(
    tmp_path: Path, policy: list[dict[str, Any]], grant: str
) -> None:
    assert f"Role1 may {grant}, which nothing needs" in mistakes(tmp_path, *policy)
    assert f"Role1 may {grant}, which nothing needs" not in mistakes(tmp_path, *policy, reasons={grant: "because"})


def test_a_reason_for_what_is_needed_is_named(tmp_path: Path) -> None:
    said = mistakes(tmp_path, statement(["s3:GetObject"], [OBJECTS]), reasons={"s3:GetObject": "because"})
    assert said == ["Role1 has a reason for s3:GetObject, which is needed"]


def test_a_grant_of_several_deployments_is_needed_where_one_of_them_needs_it(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = []
    for number, asked in enumerate(("s3:GetObject", "s3:PutObject")):
        bucket = f"arn:aws:s3:::shoal-g{number}-data666c94c7-{number}b84a367b5456"
        policy = [statement(["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], [f"{bucket}/*", f"{bucket}/runs/*"])]
        who = f"Shoal-g{number}-Role1-ABC"
        lines.append({"who": f"assumed-role/{who}", "policies": [policy]})
        lines.append(asdict(Check(WHO.replace("Shoal-x-Role1-ABC", who), asked, f"{bucket}/others/1", ALLOWED)))
        lines.append({"who": f"assumed-role/{who}", "policies": []})  # it asks while its stack is being deleted
    (tmp_path / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert {each[-1] for each in needed_by_none(tmp_path, "Role1")} == {
        "s3:DeleteObject",
        "arn:aws:s3:::shoal--data/runs/*",
    }


def test_a_condition_holds_in_a_replay_as_it_did() -> None:
    key = "aws:ResourceTag/ours"
    asked = Check(WHO, "ec2:TerminateInstances", "arn:aws:ec2:::instance/i-1", ALLOWED, context={key: "yes"})
    for value, allowed in (("yes", True), ("no", False)):
        policy = [statement(["ec2:TerminateInstances"], ["*"], StringEquals={key: value})]
        assert is_allowed(asked, [policy]) is allowed
