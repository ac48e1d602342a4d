import time

import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.faults.kinds import Denied, ExpiredCredentials
from tests.local_aws.resources import ROLES
from tests.local_aws.waiting import until

DAY = {"Start": "2026-01-01", "End": "2026-01-02"}
REFUSED = [
    ("service-quotas", "get_service_quota", {"ServiceCode": "ec2", "QuotaCode": "L-00000000"}),
    ("emr", "run_job_flow", {"Name": "no", "ReleaseLabel": "emr-7.99.0", "Instances": {}}),
    (
        "emr",
        "run_job_flow",
        {"Name": "no", "Instances": {"InstanceFleets": [{"InstanceFleetType": "MASTER"}]}, **ROLES},
    ),
    ("emr", "list_release_labels", {}),
    ("pricing", "get_products", {"ServiceCode": "AmazonEC2"}),
    ("ce", "get_cost_and_usage", {"TimePeriod": DAY, "Granularity": "DAILY", "Metrics": ["UnblendedCost"]}),
    ("ec2", "describe_instance_types", {}),
    ("ec2", "run_instances", {"ImageId": "ami-1", "MinCount": 10**9, "MaxCount": 10**9}),
    ("s3", "delete_objects", {"Bucket": "any", "Delete": {"Objects": [{"Key": str(n)} for n in range(1001)]}}),
    ("ec2", "get_ebs_encryption_by_default", {}),
    (
        "autoscaling",
        "terminate_instance_in_auto_scaling_group",
        {"InstanceId": "i-0", "ShouldDecrementDesiredCapacity": True},
    ),
]


@pytest.mark.parametrize(("service", "operation", "arguments"), REFUSED, ids=[row[1] for row in REFUSED])
def test_missing_resources_and_unsupported_operations_are_refused(service, operation, arguments, client, messages):
    with messages.raises(ClientError):
        getattr(client(service), operation)(**arguments)


def rehearse(client, **more):
    request = {"ImageId": "ami-0a1b2c3d4e5f60718", "InstanceType": "g5.xlarge", **more}
    with pytest.raises(ClientError) as answer:
        client("ec2").run_instances(DryRun=True, MinCount=1, MaxCount=1, **request)
    return str(answer.value.response["Error"]["Code"])


def test_a_dry_run_starts_nothing_and_finds_missing_resources_and_permissions(client, aws):
    assert rehearse(client) == "DryRunOperation"
    assert client("ec2").describe_instances()["Reservations"] == []
    assert rehearse(client, SubnetId="subnet-0a1b2c3d4e5f60718") == "InvalidSubnetID.NotFound"
    assert rehearse(client, ImageId="resolve:ssm:/mine/image") == "InvalidParameterValue"
    with aws.faults.during(Denied(service="ec2", operation="RunInstances")):
        assert rehearse(client) == "UnauthorizedOperation"


@pytest.mark.parametrize(
    ("fault", "service", "operation", "options", "code"),
    [
        ("expired", "emr", "list_clusters", {}, "ExpiredTokenException"),
        ("expired", "cloudformation", "list_stacks", {}, "ExpiredToken"),
        ("expired", "ec2", "describe_vpcs", {}, "RequestExpired"),
        ("expired", "lambda", "list_functions", {}, "ExpiredTokenException"),
        ("expired", "s3", "list_buckets", {}, "ExpiredToken"),
        ("expired", "s3", "head_bucket", {"Bucket": "any"}, "400"),  # a response to HEAD has no body with an error code
        ("elasticmapreduce", "emr", "list_clusters", {}, "AccessDeniedException"),
        ("cloudformation", "cloudformation", "list_stacks", {}, "AccessDenied"),
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


def test_credentials_of_another_key_do_not_expire(client, aws):
    with aws.faults.during(ExpiredCredentials(key="another")):
        assert client("s3").list_buckets()["Buckets"] == []


def test_head_bucket_returns_the_region(client):
    s3 = client("s3")
    s3.create_bucket(Bucket="abroad", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    assert s3.head_bucket(Bucket="abroad")["BucketRegion"] == "eu-west-1"
    assert s3.get_bucket_location(Bucket="abroad")["LocationConstraint"] == "eu-west-1"


def idle(client, cluster, hours_ahead):
    end = time.time() + hours_ahead * 3600
    points = client("cloudwatch").get_metric_statistics(
        Namespace="AWS/ElasticMapReduce",
        MetricName="IsIdle",
        Dimensions=[{"Name": "JobFlowId", "Value": cluster}],
        StartTime=end - 1800,
        EndTime=end,
        Period=300,
        Statistics=["Minimum"],
    )["Datapoints"]
    return [point["Minimum"] for point in points]


def test_only_a_cluster_without_work_is_idle(client):
    emr = client("emr")
    instances = {"KeepJobFlowAliveWhenNoSteps": True, "MasterInstanceType": "m5.xlarge", "InstanceCount": 1}
    cluster = emr.run_job_flow(Name="idle", Instances=instances, **ROLES)["JobFlowId"]

    def state():
        return str(emr.describe_cluster(ClusterId=cluster)["Cluster"]["Status"]["State"])

    until(lambda: state() == "WAITING")
    assert idle(client, cluster, 2) == [1.0] * 6
    jar = {"Jar": "command-runner.jar", "Args": ["sleep", "1000"]}
    emr.add_job_flow_steps(JobFlowId=cluster, Steps=[{"Name": "busy", "HadoopJarStep": jar}])
    until(lambda: state() == "RUNNING")
    assert idle(client, cluster, 2) == [0.0] * 6
    paid = emr.list_instances(ClusterId=cluster, InstanceStates=["RUNNING"])["Instances"]
    assert [instance["InstanceType"] for instance in paid] == ["m5.xlarge"]
    assert paid[0]["Status"]["Timeline"]["CreationDateTime"]
    emr.terminate_job_flows(JobFlowIds=[cluster])
    until(lambda: state() == "TERMINATED")
    assert idle(client, cluster, 2) == []
    assert emr.list_instances(ClusterId=cluster, InstanceStates=["RUNNING"])["Instances"] == []


@pytest.mark.parametrize(
    ("service", "operation", "arguments"),
    [
        ("ssm", "get_parameters", {"Names": ["x"]}),
        ("emr", "list_clusters", {}),
        ("sagemaker", "list_training_jobs", {}),
    ],
)
def test_json_that_is_nested_too_deeply_is_refused(service, operation, arguments, client):
    asking = client(service)
    asking.meta.events.register(
        f"before-call.{service}", lambda params, **_: params.update(body=b"[" * 100_000), "deep"
    )
    with pytest.raises(ClientError, match="SerializationException") as refusal:
        getattr(asking, operation)(**arguments)
    asking.meta.events.unregister(f"before-call.{service}", unique_id="deep")
    assert refusal.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
