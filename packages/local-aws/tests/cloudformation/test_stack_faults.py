import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from shoal_local_aws.aws import REGION
from shoal_local_aws.faults.kinds import Throttled
from tests.local_aws.accounts import keys_of
from tests.local_aws.resources import KINDS, SUBNET, VPC, of_kind

ALONE = {kind: row["delete"] for kind, row in KINDS.items() if "delete" in row}


def test_a_missing_resource_does_not_block_the_deletion_of_its_stack(stacks, client):
    resources = {"Vpc": VPC, "Subnet": SUBNET} | {kind.replace("::", ""): of_kind(kind) for kind in ALONE}
    assert stacks.create("gone", resources) == "CREATE_COMPLETE", stacks.reasons("gone")
    for kind, (service, operation, key) in ALONE.items():
        name = stacks.physical("gone", kind.replace("::", ""))
        if kind == "AWS::EC2::EIP":
            name = client("ec2").describe_addresses(PublicIps=[name])["Addresses"][0]["AllocationId"]
        getattr(client(service), operation)(**{key: [name] if key.endswith("Ids") else name})
    assert stacks.delete("gone") == "DELETE_COMPLETE", stacks.reasons("gone")


CALLS = {
    "cloudformation": ("list_stacks", "Throttling"),
    "autoscaling": ("describe_auto_scaling_groups", "Throttling"),
    "ec2": ("describe_vpcs", "RequestLimitExceeded"),
    "s3": ("list_buckets", "SlowDown"),
    "emr": ("list_clusters", "ThrottlingException"),
    "ssm": ("describe_parameters", "ThrottlingException"),
    "efs": ("describe_file_systems", "ThrottlingException"),
    "lambda": ("list_functions", "TooManyRequestsException"),
}
SIGNED = {"emr": "elasticmapreduce", "efs": "elasticfilesystem"}


@pytest.mark.parametrize("service", CALLS)
def test_a_throttled_call_gets_the_services_error_and_succeeds_on_retry(service, aws, client):
    operation, code = CALLS[service]
    once = Config(retries={"total_max_attempts": 1})
    impatient = boto3.client(service, endpoint_url=aws.endpoint, region_name=REGION, **keys_of(aws), config=once)
    with aws.faults.during(Throttled(service=SIGNED.get(service, service), times=2)):
        with pytest.raises(ClientError) as refused:
            getattr(impatient, operation)()
        assert refused.value.response["Error"]["Code"] == code
        getattr(client(service), operation)()


def test_the_emulators_own_calls_are_not_throttled(stacks, aws):
    address = {"Type": "AWS::EC2::EIP", "Properties": {"Domain": "vpc"}}
    with aws.faults.during(Throttled(service="ec2")):
        assert stacks.create("own", {"Address": address}) == "CREATE_COMPLETE"
    stacks.delete("own")
