import io
import json
import tarfile
from pathlib import Path

import pytest
import yaml
from botocore.exceptions import ClientError
from shoal_local_aws.faults.kinds import QuotaLimit
from tests.local_aws.waiting import until

pytestmark = pytest.mark.usefixtures("raised_quotas")

ANYTHING = {"Effect": "Allow", "Action": "*", "Resource": "*"}
SHOW = "cd $SAGEMAKER_BASE_DIR; cat input/config/*.json input/data/one/*; echo 'loss=0.5 loss=0.25'; echo x > model/m"


@pytest.fixture(scope="module")
def role(client):
    iam = client("iam")
    trust = {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}
    documents = (json.dumps({"Version": "2012-10-17", "Statement": [each]}) for each in (trust, ANYTHING))
    arn = iam.create_role(RoleName="jobs", AssumeRolePolicyDocument=next(documents))["Role"]["Arn"]
    iam.put_role_policy(RoleName="jobs", PolicyName="all", PolicyDocument=next(documents))
    client("s3").create_bucket(Bucket="jobs")
    client("s3").put_object(Bucket="jobs", Key="in/one.txt", Body=b"of a channel")
    return str(arn)


def request(name, role, script="true", **more):
    asked = yaml.safe_load(Path(__file__).with_name("request.yaml").read_text("utf-8"))
    asked["AlgorithmSpecification"]["ContainerEntrypoint"] = ["bash", "-c", script]
    return {**asked, "TrainingJobName": name, "RoleArn": role, **more}


def ended(client, name):
    def job():
        found = client("sagemaker").describe_training_job(TrainingJobName=name)
        return found if found["TrainingJobStatus"] in ("Completed", "Failed", "Stopped") else None

    return dict(until(job))


def test_a_container_has_the_documented_layout_and_leaves_model_log_and_metrics(client, role):
    client("sagemaker").create_training_job(**request("one", role, SHOW))
    job = ended(client, "one")
    assert job["TrainingJobStatus"] == "Completed"
    assert job["TrainingJobArn"] == "arn:aws:sagemaker:us-east-1:000000000000:training-job/one"
    assert [(each["MetricName"], each["Value"]) for each in job["FinalMetricDataList"]] == [("loss", 0.25)]
    packed = client("s3").get_object(Bucket="jobs", Key="out/one/output/model.tar.gz")["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        assert archive.getnames() == ["m"]
    logs, group = client("logs"), "/aws/sagemaker/TrainingJobs"
    (stream,) = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix="one/")["logStreams"]
    assert stream["logStreamName"].startswith("one/algo-1-")
    events = logs.get_log_events(logGroupName=group, logStreamName=stream["logStreamName"])["events"]
    printed = "\n".join(each["message"] for each in events)
    for text in ('"epochs": "3"', '"current_host": "algo-1"', '"hosts": ["algo-1"]', "of a channel"):
        assert text in printed


def test_a_failed_job_has_the_reason_from_its_failure_file(client, role):
    script = "echo 'no rows' > $SAGEMAKER_BASE_DIR/output/failure; exit 3"
    client("sagemaker").create_training_job(**request("fails", role, script))
    job = ended(client, "fails")
    assert (job["TrainingJobStatus"], job["FailureReason"]) == ("Failed", "AlgorithmError: no rows, exit code: 3")


def test_a_job_at_its_limit_is_stopped(client, role):
    script = "trap 'echo stopped > $SAGEMAKER_BASE_DIR/model/m; exit 0' TERM; sleep 600 & wait"
    limit = {"MaxRuntimeInSeconds": 1}
    client("sagemaker").create_training_job(**request("long", role, script, StoppingCondition=limit))
    job = ended(client, "long")
    assert (job["TrainingJobStatus"], job["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
    with pytest.raises(ClientError, match="in status Stopped"):
        client("sagemaker").stop_training_job(TrainingJobName="long")


def test_a_missing_channel_and_a_foreign_image_fail_the_job(client, role):
    nowhere = request("nowhere", role)
    nowhere["InputDataConfig"][0]["DataSource"]["S3DataSource"]["S3Uri"] = "s3://jobs/nothing"
    foreign = request("foreign", role)
    foreign["AlgorithmSpecification"]["TrainingImage"] = "111122223333.dkr.ecr.us-east-1.amazonaws.com/mine:1"
    former = request("former", role)
    image = former["AlgorithmSpecification"]["TrainingImage"]
    former["AlgorithmSpecification"]["TrainingImage"] = image.replace("/pytorch:", "/pytorch-training:")
    absent = "Cannot find repository"
    for asked, reason in ((nowhere, "Data download failed"), (foreign, absent), (former, absent)):
        client("sagemaker").create_training_job(**asked)
        assert reason in ended(client, asked["TrainingJobName"])["FailureReason"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"TrainingJobName": "one_two"}, "ValidationException"),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": 29 * 24 * 3600}}, "ValidationException"),
        ({"EnableManagedSpotTraining": True}, "ValidationException"),
        ({"StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}}, "ValidationException"),
        ({"TrainingJobName": "twice"}, "ResourceInUse"),
    ],
)
def test_requests_that_sagemaker_would_refuse_are_refused(client, role, change, code):
    sagemaker = client("sagemaker")
    if change.get("TrainingJobName") == "twice":
        sagemaker.create_training_job(**request("twice", role))
    with pytest.raises(ClientError) as refused:
        sagemaker.create_training_job(**{**request("refused", role), **change})
    assert refused.value.response["Error"]["Code"] == code


def test_other_operations_are_refused(client, messages):
    with messages.raises(ClientError):
        client("sagemaker").list_endpoints()
    with messages.raises(ClientError):
        client("sagemaker").describe_training_job(TrainingJobName="never")


def test_each_type_and_market_has_a_separate_quota(client, aws, role, messages):
    quotas = client("service-quotas").list_service_quotas(ServiceCode="sagemaker")["Quotas"]
    (code,) = (each["QuotaCode"] for each in quotas if each["QuotaName"] == "ml.g5.xlarge for training job usage")
    limits = {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}
    until(lambda: not client("sagemaker").list_training_jobs(StatusEquals="InProgress")["TrainingJobSummaries"])
    spot = {"EnableManagedSpotTraining": True, "StoppingCondition": limits}
    with aws.faults.during(QuotaLimit(code=code, value=1)):
        client("sagemaker").create_training_job(**request("first", role, "sleep 1000"))
        with messages.raises(ClientError):
            client("sagemaker").create_training_job(**request("second", role))
        client("sagemaker").create_training_job(**request("on-spot", role, **spot))
        client("sagemaker").stop_training_job(TrainingJobName="first")
        assert ended(client, "first")["TrainingJobStatus"] == "Stopped"
        client("sagemaker").create_training_job(**request("third", role))
