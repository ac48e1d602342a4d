import json
from pathlib import Path

import boto3
import pytest
import yaml
from shoal_local_aws.account import raise_quotas
from tests.local_aws.accounts import keys_of
from tests.local_aws.stacks import Stacks
from tests.local_aws.waiting import until

REGION = "eu-west-1"
RESOURCES = yaml.safe_load(Path(__file__).with_name("regions.yaml").read_text("utf-8"))
OUTPUTS = {name: {"Value": {"Fn::GetAtt": ["Custom", name]}} for name in ("Region", "Zone")}


@pytest.fixture(scope="module")
def there(aws):
    session = boto3.Session(**keys_of(aws), region_name=REGION)
    return lambda service: session.client(service, endpoint_url=aws.endpoint)


def test_a_stack_in_another_region_works_only_there(there, client, aws):
    raise_quotas(REGION)
    stacks = Stacks(there)
    assert stacks.create("there", RESOURCES, outputs=OUTPUTS) == "CREATE_COMPLETE", stacks.reasons("there")
    (stack,) = there("cloudformation").describe_stacks(StackName="there")["Stacks"]
    assert f":{REGION}:" in stack["StackId"]
    assert client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"] == []
    assert client("emr").list_clusters()["Clusters"] == []
    assert there("emr").list_clusters()["Clusters"][0]["Status"]["State"] == "WAITING"
    values = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    assert values == {"Region": REGION, "Zone": f"{REGION}b"}
    (group,) = there("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    root = aws.folder / "nodes" / group["Instances"][0]["InstanceId"]
    until(lambda: (root / "ready").exists())
    assert json.loads((root / "place").read_text())["AvailabilityZone"] == f"{REGION}b"
    assert (root / "region").read_text().strip() == REGION
    assert stacks.delete("there") == "DELETE_COMPLETE"
    assert there("emr").list_clusters(ClusterStates=["WAITING"])["Clusters"] == []
