"""Resources that a deployment can leave, one of each kind."""

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import boto3

from common import names
from infra import topology
from infra.managed_spec import aws_image

TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})
PERMISSION = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})


class Planter:
    """Creator of resources that look as if a deployment left them."""

    def __init__(self, deployment: str) -> None:
        self.deployment = deployment
        self.stack = topology.stack_name(deployment)
        self.pairs = {names.TAG_DEPLOYMENT: deployment}
        self.tags = [{"Key": key, "Value": value} for key, value in self.pairs.items()]
        self.name = f"Shoal-{deployment}-Thing12345678-ABCDEFGHIJKL"
        self.lower = self.name.lower()
        self._made: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        return self.once(f"client of {service}", lambda: boto3.client(service))

    def ec2(self, made: str, kind: str, **asked: Any) -> Any:
        """Create a resource with tags, once for each name and parameters, and return the answer."""
        tags = [{"ResourceType": kind, "Tags": self.tags}]
        make = getattr(self.client("ec2"), made)
        return self.once(f"{made} {asked}", lambda: make(**asked, TagSpecifications=tags))

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def vpc(self) -> str:
        return str(self.ec2("create_vpc", "vpc", CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"])

    def subnet(self) -> str:
        made = self.ec2("create_subnet", "subnet", VpcId=self.vpc(), CidrBlock="10.0.0.0/24")
        return str(made["Subnet"]["SubnetId"])

    def group(self, name: str = "") -> str:
        asked = {"GroupName": f"{self.name}{name}", "Description": "x", "VpcId": self.vpc()}
        return str(self.ec2("create_security_group", "security-group", **asked)["GroupId"])

    def role(self) -> str:
        def make() -> str:
            iam = self.client("iam")
            iam.create_role(RoleName=self.name, AssumeRolePolicyDocument=TRUST, Tags=self.tags)
            iam.put_role_policy(RoleName=self.name, PolicyName="inline", PolicyDocument=PERMISSION)
            return self.name

        return str(self.once("role", make))

    def template(self) -> str:
        data = {"ImageId": "ami-0a1b2c3d4e5f60718", "InstanceType": "g5.xlarge"}
        asked = {"LaunchTemplateName": self.name, "LaunchTemplateData": data}
        return str(self.ec2("create_launch_template", "launch-template", **asked)["LaunchTemplate"]["LaunchTemplateId"])

    def system(self) -> str:
        asked = {"CreationToken": self.name, "Tags": self.tags}
        return str(self.once("system", lambda: self.client("efs").create_file_system(**asked))["FileSystemId"])

    def topic(self) -> str:
        made = self.once("topic", lambda: self.client("sns").create_topic(Name=self.name, Tags=self.tags))
        return str(made["TopicArn"])


def make_bucket(name: str, deployment: str, keep: str = "", region: str = "us-east-1") -> Any:
    """Create a bucket of a deployment with this `keep` tag, and return the S3 client."""
    s3 = boto3.client("s3", region_name=region)
    elsewhere = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    s3.create_bucket(Bucket=name, **elsewhere)
    tags = {names.TAG_DEPLOYMENT: deployment, **({names.TAG_KEEP: keep} if keep else {})}
    tagging = {"TagSet": [{"Key": key, "Value": value} for key, value in tags.items()]}
    s3.put_bucket_tagging(Bucket=name, Tagging=tagging)
    return s3


TOPIC = {"Topic": {"Type": "AWS::SNS::Topic"}}


def make_stack(
    name: str,
    resources: dict[str, Any],
    region: str = "us-east-1",
    outputs: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, str]:
    """Create a stack, and return its resources by logical id."""
    cloudformation: Any = boto3.client("cloudformation", region_name=region)
    template = {"Resources": resources, "Outputs": outputs or {}}
    cloudformation.create_stack(StackName=name, TemplateBody=json.dumps(template), **more)
    cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
    made = cloudformation.describe_stack_resources(StackName=name)["StackResources"]
    return {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in made}


def delete_stack(name: str, **more: Any) -> None:
    """Delete a stack, and wait for its end."""
    boto3.client("cloudformation").delete_stack(StackName=name, **more)
    waiter = boto3.client("cloudformation").get_waiter("stack_delete_complete")
    waiter.wait(StackName=name, WaiterConfig={"Delay": 1})


def bucket(p: Planter) -> None:
    s3 = p.client("s3")
    s3.create_bucket(Bucket=p.lower)
    s3.put_bucket_versioning(Bucket=p.lower, VersioningConfiguration={"Status": "Enabled"})
    s3.put_bucket_tagging(Bucket=p.lower, Tagging={"TagSet": p.tags})
    for body in (b"first", b"second"):
        s3.put_object(Bucket=p.lower, Key="key", Body=body)
    s3.create_multipart_upload(Bucket=p.lower, Key="unfinished")


def function(p: Planter) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.py", "def handler(event, context): ...")
    runs = {"Runtime": "python3.12", "Handler": "index.handler", "Code": {"ZipFile": packed.getvalue()}}
    role = f"arn:aws:iam::000000000000:role/{p.role()}"
    p.client("lambda").create_function(FunctionName=p.name, Role=role, Tags=p.pairs, **runs)


def rule(p: Planter) -> None:
    events = p.client("events")
    events.put_rule(Name=p.name, ScheduleExpression="rate(5 minutes)", Tags=p.tags)
    events.put_targets(Rule=p.name, Targets=[{"Id": "one", "Arn": "arn:aws:lambda:us-east-1:0:function:x"}])


def profile(p: Planter) -> None:
    iam = p.client("iam")
    iam.create_instance_profile(InstanceProfileName=p.name)
    iam.add_role_to_instance_profile(InstanceProfileName=p.name, RoleName=p.role())


def cluster(p: Planter) -> None:
    groups = [{"InstanceRole": "MASTER", "InstanceType": "m5.xlarge", "InstanceCount": 1}]
    instances = {"InstanceGroups": groups, "KeepJobFlowAliveWhenNoSteps": True, "TerminationProtected": True}
    roles = {"ReleaseLabel": "emr-7.13.0", "JobFlowRole": "nodes", "ServiceRole": "service"}
    p.client("emr").run_job_flow(Name=p.stack, Instances=instances, Tags=p.tags, **roles)


def training_job(p: Planter) -> None:
    image = {"TrainingImage": aws_image("us-east-1"), "TrainingInputMode": "File"}
    p.client("sagemaker").create_training_job(
        TrainingJobName=f"shoal-{p.name.lower()}-261127154000",
        AlgorithmSpecification={**image, "ContainerEntrypoint": ["sleep", "600"]},
        RoleArn="arn:aws:iam::000000000000:role/jobs",
        OutputDataConfig={"S3OutputPath": "s3://no-bucket"},
        ResourceConfig={"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
        StoppingCondition={"MaxRuntimeInSeconds": 600},
        Tags=p.tags,
    )


def tied_groups(p: Planter) -> None:
    """Create two security groups that refer to each other."""
    first, second = p.group(), p.group("-2")
    for one, other in ((first, second), (second, first)):
        rule = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": other}]}
        p.client("ec2").authorize_security_group_ingress(GroupId=one, IpPermissions=[rule])


def gateway(p: Planter) -> None:
    made = p.ec2("create_internet_gateway", "internet-gateway")
    identifier = made["InternetGateway"]["InternetGatewayId"]
    p.client("ec2").attach_internet_gateway(VpcId=p.vpc(), InternetGatewayId=identifier)


def endpoint(p: Planter) -> None:
    asked = {"ServiceName": "com.amazonaws.us-east-1.ssm", "VpcEndpointType": "Interface", "SubnetIds": [p.subnet()]}
    p.ec2("create_vpc_endpoint", "vpc-endpoint", VpcId=p.vpc(), **asked)


def scaling_group(p: Planter) -> None:
    template = {"LaunchTemplateId": p.template(), "Version": "$Latest"}
    tags = [{**tag, "PropagateAtLaunch": True} for tag in p.tags]
    asked = {"MinSize": 0, "MaxSize": 1, "LaunchTemplate": template, "VPCZoneIdentifier": p.subnet(), "Tags": tags}
    p.client("autoscaling").create_auto_scaling_group(AutoScalingGroupName=p.name, **asked)


def alarm(p: Planter) -> None:
    metric = {"MetricName": "x", "Namespace": "x", "Statistic": "Sum", "Period": 60, "EvaluationPeriods": 1}
    above = {"Threshold": 1, "ComparisonOperator": "GreaterThanThreshold"}
    p.client("cloudwatch").put_metric_alarm(AlarmName=p.name, Tags=p.tags, **metric, **above)


PLANTS: dict[str, Callable[[Planter], Any]] = {
    "vpc": Planter.vpc,
    "subnet": Planter.subnet,
    "security group": tied_groups,
    "route table": lambda p: p.ec2("create_route_table", "route-table", VpcId=p.vpc()),
    "internet gateway": gateway,
    "elastic ip": lambda p: p.ec2("allocate_address", "elastic-ip", Domain="vpc"),
    "nat gateway": lambda p: p.ec2("create_nat_gateway", "natgateway", SubnetId=p.subnet(), ConnectivityType="private"),
    "vpc endpoint": endpoint,
    "instance": lambda p: p.ec2(
        "run_instances", "instance", ImageId="ami-1", MinCount=1, MaxCount=1, SubnetId=p.subnet()
    ),
    "volume": lambda p: p.ec2("create_volume", "volume", AvailabilityZone="us-east-1a", Size=8),
    "launch template": Planter.template,
    "placement group": lambda p: p.ec2(
        "create_placement_group", "placement-group", GroupName=p.name, Strategy="cluster"
    ),
    "auto scaling group": scaling_group,
    "emr cluster": cluster,
    "training job": training_job,
    "emr security configuration": lambda p: p.client("emr").create_security_configuration(
        Name=p.name, SecurityConfiguration="{}"
    ),
    "efs file system": Planter.system,
    "efs mount target": lambda p: p.client("efs").create_mount_target(FileSystemId=p.system(), SubnetId=p.subnet()),
    "s3 bucket": bucket,
    "lambda function": function,
    "log group": lambda p: p.client("logs").create_log_group(logGroupName=p.name, tags=p.pairs),
    "event rule": rule,
    "ssm parameter": lambda p: p.client("ssm").put_parameter(
        Name=names.guard_parameter(p.deployment), Value="{}", Type="String"
    ),
    "sns topic": Planter.topic,
    "sns subscription": lambda p: p.client("sns").subscribe(
        TopicArn=p.topic(), Protocol="email", Endpoint="me@example.org"
    ),
    "cloudwatch alarm": alarm,
    "iam role": Planter.role,
    "iam instance profile": profile,
}
