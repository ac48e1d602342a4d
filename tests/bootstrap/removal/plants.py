"""Resources that a deployment can leave, one of each kind."""

import io
import json
import zipfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from infra import topology
from infra.managed_spec import aws_image

TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})
PERMISSION = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})


class Planter:
    """Makes things that look as a deployment leaves them."""

    def __init__(self, deployment: str) -> None:
        self.deployment = deployment
        self.stack = topology.stack_name(deployment)
        self.pairs = {topology.TAG_DEPLOYMENT: deployment}
        self.tags = [{"Key": key, "Value": value} for key, value in self.pairs.items()]
        self.name = f"Shoal-{deployment}-Thing12345678-ABCDEFGHIJKL"
        self.lower = self.name.lower()
        self._made: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        return self.once(f"client of {service}", lambda: boto3.client(service))

    def specified(self, kind: str) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": self.tags}]

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def vpc(self) -> str:
        def make() -> str:
            made = self.client("ec2").create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=self.specified("vpc"))
            return str(made["Vpc"]["VpcId"])

        return str(self.once("vpc", make))

    def subnet(self) -> str:
        def make() -> str:
            made = self.client("ec2").create_subnet(
                VpcId=self.vpc(), CidrBlock="10.0.0.0/24", TagSpecifications=self.specified("subnet")
            )
            return str(made["Subnet"]["SubnetId"])

        return str(self.once("subnet", make))

    def group(self) -> str:
        def make() -> str:
            made = self.client("ec2").create_security_group(
                GroupName=self.name,
                Description="x",
                VpcId=self.vpc(),
                TagSpecifications=self.specified("security-group"),
            )
            return str(made["GroupId"])

        return str(self.once("group", make))

    def role(self) -> str:
        def make() -> str:
            iam = self.client("iam")
            iam.create_role(RoleName=self.name, AssumeRolePolicyDocument=TRUST, Tags=self.tags)
            iam.put_role_policy(RoleName=self.name, PolicyName="inline", PolicyDocument=PERMISSION)
            return self.name

        return str(self.once("role", make))

    def template(self) -> str:
        def make() -> str:
            made = self.client("ec2").create_launch_template(
                LaunchTemplateName=self.name,
                LaunchTemplateData={"ImageId": "ami-0a1b2c3d4e5f60718", "InstanceType": "g5.xlarge"},
                TagSpecifications=self.specified("launch-template"),
            )
            return str(made["LaunchTemplate"]["LaunchTemplateId"])

        return str(self.once("template", make))

    def system(self) -> str:
        def make() -> str:
            made = self.client("efs").create_file_system(CreationToken=self.name, Tags=self.tags)
            return str(made["FileSystemId"])

        return str(self.once("system", make))

    def topic(self) -> str:
        return str(
            self.once("topic", lambda: self.client("sns").create_topic(Name=self.name, Tags=self.tags)["TopicArn"])
        )


def bucket(p: Planter) -> None:
    s3 = p.client("s3")
    s3.create_bucket(Bucket=p.lower)
    s3.put_bucket_versioning(Bucket=p.lower, VersioningConfiguration={"Status": "Enabled"})
    s3.put_bucket_tagging(Bucket=p.lower, Tagging={"TagSet": p.tags})
    for body in (b"first", b"second"):
        s3.put_object(Bucket=p.lower, Key="key", Body=body)
    s3.create_multipart_upload(Bucket=p.lower, Key="unfinished")


def oddly_named(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """S3, and in it a bucket with old versions and unfinished uploads of which some names are none of XML's."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")  # the answer to the beginning of such an upload cannot be read
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=name)
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    for key in ("nodes/\x01a", "nodes/b\uffff", "nodes/\r\n", "plain", "a + b%41&amp;<c>"):
        for _ in range(2):
            s3.put_object(Bucket=name, Key=key, Body=b"x")
        with suppress(ClientError):
            s3.create_multipart_upload(Bucket=name, Key=key)
    s3.delete_object(Bucket=name, Key="nodes/\x01a")
    return s3


def function(p: Planter) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.py", "def handler(event, context): ...")
    p.client("lambda").create_function(
        FunctionName=p.name,
        Runtime="python3.12",
        Handler="index.handler",
        Role=f"arn:aws:iam::000000000000:role/{p.role()}",
        Code={"ZipFile": packed.getvalue()},
        Tags=p.pairs,
    )


def rule(p: Planter) -> None:
    events = p.client("events")
    events.put_rule(Name=p.name, ScheduleExpression="rate(5 minutes)", Tags=p.tags)
    events.put_targets(Rule=p.name, Targets=[{"Id": "one", "Arn": "arn:aws:lambda:us-east-1:0:function:x"}])


def profile(p: Planter) -> None:
    iam = p.client("iam")
    iam.create_instance_profile(InstanceProfileName=p.name)
    iam.add_role_to_instance_profile(InstanceProfileName=p.name, RoleName=p.role())


def cluster(p: Planter) -> None:
    instances = {
        "InstanceGroups": [{"InstanceRole": "MASTER", "InstanceType": "m5.xlarge", "InstanceCount": 1}],
        "KeepJobFlowAliveWhenNoSteps": True,
        "TerminationProtected": True,
    }
    p.client("emr").run_job_flow(
        Name=topology.stack_name(p.deployment),
        ReleaseLabel="emr-7.13.0",
        JobFlowRole="nodes",
        ServiceRole="service",
        Instances=instances,
        Tags=p.tags,
    )


def training_job(p: Planter) -> None:
    p.client("sagemaker").create_training_job(
        TrainingJobName=f"shoal-{p.name.lower()}-261127154000",
        AlgorithmSpecification={
            "TrainingImage": aws_image("us-east-1"),
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["sleep", "600"],
        },
        RoleArn="arn:aws:iam::000000000000:role/jobs",
        OutputDataConfig={"S3OutputPath": "s3://no-bucket"},
        ResourceConfig={"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
        StoppingCondition={"MaxRuntimeInSeconds": 600},
        Tags=p.tags,
    )


def tied_groups(p: Planter) -> None:
    """Two groups that name each other, and a foreign one that names one of them."""
    ec2, first = p.client("ec2"), p.group()
    second = ec2.create_security_group(
        GroupName=f"{p.name}-2", Description="x", VpcId=p.vpc(), TagSpecifications=p.specified("security-group")
    )["GroupId"]
    for one, other in ((first, second), (second, first)):
        ec2.authorize_security_group_ingress(
            GroupId=one, IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": other}]}]
        )


def budget(p: Planter) -> None:
    limit = {"BudgetLimit": {"Amount": "5", "Unit": "USD"}, "TimeUnit": "MONTHLY", "BudgetType": "COST"}
    p.client("budgets").create_budget(
        AccountId="000000000000",
        Budget={
            "BudgetName": topology.budget_name(p.deployment, "us-east-1"),
            "CostFilters": {"TagKeyValue": [f"user:{topology.TAG_DEPLOYMENT}${p.deployment}"]},
            **limit,
        },
    )


PLANTS: dict[str, Callable[[Planter], Any]] = {
    "vpc": Planter.vpc,
    "subnet": Planter.subnet,
    "security group": tied_groups,
    "route table": lambda p: p.client("ec2").create_route_table(
        VpcId=p.vpc(), TagSpecifications=p.specified("route-table")
    ),
    "internet gateway": lambda p: p.client("ec2").attach_internet_gateway(
        VpcId=p.vpc(),
        InternetGatewayId=p.client("ec2").create_internet_gateway(TagSpecifications=p.specified("internet-gateway"))[
            "InternetGateway"
        ]["InternetGatewayId"],
    ),
    "elastic ip": lambda p: p.client("ec2").allocate_address(Domain="vpc", TagSpecifications=p.specified("elastic-ip")),
    "nat gateway": lambda p: p.client("ec2").create_nat_gateway(
        SubnetId=p.subnet(), ConnectivityType="private", TagSpecifications=p.specified("natgateway")
    ),
    "vpc endpoint": lambda p: p.client("ec2").create_vpc_endpoint(
        VpcId=p.vpc(),
        ServiceName="com.amazonaws.us-east-1.ssm",
        VpcEndpointType="Interface",
        SubnetIds=[p.subnet()],
        TagSpecifications=p.specified("vpc-endpoint"),
    ),
    "instance": lambda p: p.client("ec2").run_instances(
        ImageId="ami-1", MinCount=1, MaxCount=1, SubnetId=p.subnet(), TagSpecifications=p.specified("instance")
    ),
    "volume": lambda p: p.client("ec2").create_volume(
        AvailabilityZone="us-east-1a", Size=8, TagSpecifications=p.specified("volume")
    ),
    "launch template": Planter.template,
    "placement group": lambda p: p.client("ec2").create_placement_group(
        GroupName=p.name, Strategy="cluster", TagSpecifications=p.specified("placement-group")
    ),
    "auto scaling group": lambda p: p.client("autoscaling").create_auto_scaling_group(
        AutoScalingGroupName=p.name,
        MinSize=0,
        MaxSize=1,
        LaunchTemplate={"LaunchTemplateId": p.template(), "Version": "$Latest"},
        VPCZoneIdentifier=p.subnet(),
        Tags=[{**tag, "PropagateAtLaunch": True} for tag in p.tags],
    ),
    "emr cluster": cluster,
    "training job": training_job,
    "emr security configuration": lambda p: p.client("emr").create_security_configuration(
        Name=p.name, SecurityConfiguration="{}"
    ),
    "efs file system": Planter.system,
    "efs mount target": lambda p: p.client("efs").create_mount_target(FileSystemId=p.system(), SubnetId=p.subnet()),
    "efs access point": lambda p: p.client("efs").create_access_point(
        FileSystemId=p.system(), ClientToken=p.name, Tags=p.tags
    ),
    "s3 bucket": bucket,
    "lambda function": function,
    "log group": lambda p: p.client("logs").create_log_group(logGroupName=p.name, tags=p.pairs),
    "event rule": rule,
    "ssm parameter": lambda p: p.client("ssm").put_parameter(
        Name=topology.guard_parameter(p.deployment), Value="{}", Type="String"
    ),
    "sns topic": Planter.topic,
    "sns subscription": lambda p: p.client("sns").subscribe(
        TopicArn=p.topic(), Protocol="email", Endpoint="me@example.org"
    ),
    "sqs queue": lambda p: p.client("sqs").create_queue(QueueName=p.name, tags=p.pairs),
    "cloudwatch alarm": lambda p: p.client("cloudwatch").put_metric_alarm(
        AlarmName=p.name,
        MetricName="x",
        Namespace="x",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
        Statistic="Sum",
        Tags=p.tags,
    ),
    "secret": lambda p: p.client("secretsmanager").create_secret(Name=p.name, SecretString="x", Tags=p.tags),
    "budget": budget,
    "iam role": Planter.role,
    "iam instance profile": profile,
}
