"""An account that is prepared for the CDK with a qualifier of its own is not prepared again."""

import json
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from bootstrap.aws import cdk
from bootstrap.aws.account import Account
from bootstrap.lifecycle import preflight
from bootstrap.lifecycle.deploy import DeployRequest
from bootstrap.lifecycle.rules.names import DEFAULT_QUALIFIER, qualifier
from common.errors import ShoalError
from infra import topology
from tests.bootstrap.lifecycle.preflight import GPU, of


@pytest.fixture(params=[[], [DEFAULT_QUALIFIER], ["acme"], ["acme", DEFAULT_QUALIFIER], ["acme", "zeta"]])
def prepared(asking: boto3.Session, request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """The qualifiers of the account, which has something else there, too."""
    ssm, names = asking.client("ssm"), ["/cdk-bootstrap/other"]
    names += [f"/cdk-bootstrap/{each}/version" for each in request.param]
    for name in names:
        ssm.put_parameter(Name=name, Value="30", Type="String")
    yield request.param
    ssm.delete_parameters(Names=names)


def test_the_cdks_own_qualifier_comes_first_and_then_the_only_other_one(
    asking: boto3.Session, prepared: list[str]
) -> None:
    if len(prepared) == 2 and DEFAULT_QUALIFIER not in prepared:
        with pytest.raises(
            ShoalError, match=r"several qualifiers, acme, zeta; .* -c @aws-cdk/core:bootstrapQualifier="
        ):
            qualifier(Account(asking))
        _, found = preflight.online(of(training=[GPU]), asking, deployment="mine", owner="ada")
        assert [each.level for each in found if "several qualifiers" in each.sentence] == ["warning"]
        return
    context = request_of(asking).context(1)
    expected = DEFAULT_QUALIFIER if DEFAULT_QUALIFIER in prepared else next(iter(prepared), None)
    assert qualifier(Account(asking)) == expected
    assert f"@aws-cdk/core:bootstrapQualifier={expected or DEFAULT_QUALIFIER}" in context


def request_of(asking: boto3.Session) -> DeployRequest:
    wanted = topology.load("demo", cdk.TOPOLOGIES)
    request = DeployRequest(topology=wanted, source="demo", deployment="mine", owner="ada")
    request.__dict__["account"] = Account(asking)
    return request


@pytest.mark.soak
def test_a_deployment_uses_the_bucket_and_the_roles_of_that_qualifier(asking: boto3.Session, tmp_path: Path) -> None:
    ssm = asking.client("ssm")
    ssm.put_parameter(Name="/cdk-bootstrap/acme/version", Value="30", Type="String")
    context = request_of(asking).context(1)
    cdk.run(["synth", *context, "--quiet"], environment={}, assembly=tmp_path / "out", log=tmp_path / "cdk.log")
    manifest = json.dumps(json.loads((tmp_path / "out" / "Shoal-mine.assets.json").read_text()))
    assert "cdk-acme-assets-" in manifest
    assert "cdk-acme-file-publishing-role-" in manifest
    assert DEFAULT_QUALIFIER not in manifest
    ssm.delete_parameter(Name="/cdk-bootstrap/acme/version")
