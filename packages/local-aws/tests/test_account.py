import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.faults.kinds import Denied, ExpiredCredentials
from tests.local_aws.resources import ROLES

DAY = {"Start": "2026-01-01", "End": "2026-01-02"}
LIMITS = {"UnitType": "Instances", "MinimumCapacityUnits": 1, "MaximumCapacityUnits": 2}
REFUSED = [
    ("service-quotas", "get_service_quota", {"ServiceCode": "ec2", "QuotaCode": "L-00000000"}),
    (
        "emr",
        "run_job_flow",
        {"Name": "no", "Instances": {"InstanceFleets": [{"InstanceFleetType": "MASTER"}]}, **ROLES},
    ),
    (
        "emr",
        "run_job_flow",
        {"Name": "no", "ManagedScalingPolicy": {"ComputeLimits": LIMITS}, "Instances": {}, **ROLES},
    ),
    ("emr", "list_release_labels", {}),
    ("pricing", "get_products", {"ServiceCode": "AmazonEC2"}),
    ("ce", "get_cost_and_usage", {"TimePeriod": DAY, "Granularity": "DAILY", "Metrics": ["UnblendedCost"]}),
    ("s3", "delete_objects", {"Bucket": "any", "Delete": {"Objects": [{"Key": str(n)} for n in range(1001)]}}),
    ("ec2", "get_ebs_encryption_by_default", {}),
    ("ec2", "run_instances", {"DryRun": True, "ImageId": "ami-1", "MinCount": 1, "MaxCount": 1}),
    ("ec2", "run_instances", {"ImageId": "resolve:ssm:/image", "MinCount": 1, "MaxCount": 1}),
]


@pytest.mark.parametrize(("service", "operation", "arguments"), REFUSED, ids=[row[1] for row in REFUSED])
def test_missing_resources_and_unsupported_operations_are_refused(service, operation, arguments, client, messages):
    with messages.raises(ClientError):
        getattr(client(service), operation)(**arguments)


@pytest.mark.parametrize(
    ("fault", "service", "operation", "options", "code"),
    [
        ("expired", "emr", "list_clusters", {}, "ExpiredTokenException"),
        ("expired", "cloudformation", "list_stacks", {}, "ExpiredToken"),
        ("expired", "ec2", "describe_vpcs", {}, "RequestExpired"),
        ("expired", "s3", "list_buckets", {}, "ExpiredToken"),
        ("expired", "s3", "head_bucket", {"Bucket": "any"}, "400"),  # a response to HEAD has no body with an error code
        ("elasticmapreduce", "emr", "list_clusters", {}, "AccessDeniedException"),
        ("s3", "s3", "list_buckets", {}, "AccessDenied"),
    ],
)
def test_denied_and_expired_requests_get_the_services_errors(fault, service, operation, options, code, client, aws):
    expired = ExpiredCredentials(key=aws.environment["AWS_ACCESS_KEY_ID"])
    with (
        aws.faults.during(expired if fault == "expired" else Denied(service=fault)),
        pytest.raises(ClientError) as refusal,
    ):
        getattr(client(service), operation)(**options)
    assert refusal.value.response["Error"]["Code"] == code
