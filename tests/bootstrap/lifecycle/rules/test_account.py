"""Tests of the preflight rules on instances that EC2 refuses to start, and on images."""

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.exceptions import ClientError

from bootstrap.aws.account import Account
from bootstrap.lifecycle import preflight
from bootstrap.lifecycle.rules import PreflightContext
from bootstrap.lifecycle.rules.account import may_not_start, root_device_differs
from infra.rules import Finding
from tests.bootstrap.lifecycle.preflight import GPU, topology_of
from tests.messages import Messages


def context_of(*groups: dict[str, Any]) -> PreflightContext:
    topology, account = topology_of(training=groups), Account(boto3.Session())
    return PreflightContext(topology=topology, deployment="mine", owner="ada", account=account)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Finding]]:
    """Function that returns the findings if EC2 refuses each group with one of these errors (code, message)."""

    def find(*errors: tuple[str, str]) -> list[Finding]:
        answers = [
            ClientError({"Error": {"Code": code, "Message": message}}, "RunInstances") for code, message in errors
        ]
        ec2 = Mock(run_instances=Mock(side_effect=answers))
        monkeypatch.setattr(Account, "client", lambda *_: ec2)
        groups = [{**GPU, "name": f"group-{number}"} for number in range(len(errors))]
        return preflight._run("error", may_not_start, "Whether GPU nodes can be started", context_of(*groups))

    return find


@pytest.mark.parametrize(("action", "level"), [("ec2:RunInstances", "error"), ("ssm:GetParameters", "warning")])
def test_a_dry_run_that_is_refused_for_another_action_is_a_warning(
    refused: Callable[..., list[Finding]], messages: Messages, action: str, level: str
) -> None:
    why = f"User: ada is not authorized to perform: {action} on resource: * because no policy allows it"
    (finding,) = refused(("UnauthorizedOperation", why))
    assert (finding.level, action in finding.sentence) == (level, True)
    messages.check(finding.sentence)


def test_each_group_that_ec2_refuses_is_an_error_even_if_a_later_answer_is_missing(
    refused: Callable[..., list[Finding]], messages: Messages
) -> None:
    codes = ["InvalidSubnetID.NotFound", "InvalidCapacityReservationId.NotFound", "RequestLimitExceeded"]
    found = refused(*((code, f"why: {code}") for code in codes))
    assert [each.level for each in found] == ["error", "error", "warning"]
    for each in found:
        messages.check(each.sentence)


@pytest.mark.parametrize("device", ["/dev/sda1", "/dev/xvda"])
def test_an_image_must_have_the_root_device_of_amazon_linux(
    monkeypatch: pytest.MonkeyPatch, messages: Messages, device: str
) -> None:
    answer = {"Images": [{"RootDeviceName": device}]}
    monkeypatch.setattr(Account, "client", lambda *_: Mock(describe_images=Mock(return_value=answer)))
    context = context_of(GPU, {**GPU, "name": "own", "image": "ami-0a1b2c3d4e5f60718"})
    sentences = list(root_device_differs(context))
    assert len(sentences) == (device != "/dev/xvda")
    for each in sentences:
        messages.check(each)
