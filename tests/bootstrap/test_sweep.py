"""What is left of a deployment is found and deleted, kind by kind; its neighbour's, named alike, stays."""

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from bootstrap.account import Account
from bootstrap.inventory import inventory, left_over
from bootstrap.kinds import KINDS
from bootstrap.sweep import DELETED, KEPT, LEFT, find, sweep
from embedded.aws import EmbeddedAws
from infra import topology

TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})
PERMISSION = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})


@pytest.fixture(scope="module", autouse=True)
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with EmbeddedAws(tmp_path_factory.mktemp("aws")) as embedded, pytest.MonkeyPatch.context() as patch:
        for name, value in embedded.environment.items():
            patch.setenv(name, value)
        patch.setattr(boto3, "DEFAULT_SESSION", None)
        yield


class Planter:
    """Makes things that look as a deployment leaves them."""

    def __init__(self, deployment: str) -> None:
        self.deployment = deployment
        self.pairs = {topology.TAG_DEPLOYMENT: deployment}
        self.tags = [{"Key": key, "Value": value} for key, value in self.pairs.items()]
        self.name = f"Shoal-{deployment}-Thing12345678-ABCDEFGHIJKL"
        self.lower = self.name.lower()
        self._made: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        return boto3.client(service)

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
        JobFlowRole="n",
        ServiceRole="s",
        Instances=instances,
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
            "BudgetName": f"GuardBudget1234ABCD-{p.deployment}",
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
    "emr security configuration": lambda p: p.client("emr").create_security_configuration(
        Name=p.name, SecurityConfiguration="{}"
    ),
    "efs file system": Planter.system,
    "efs mount target": lambda p: p.client("efs").create_mount_target(FileSystemId=p.system(), SubnetId=p.subnet()),
    "efs access point": lambda p: p.client("efs").create_access_point(FileSystemId=p.system(), ClientToken=p.name),
    "s3 bucket": bucket,
    "lambda function": function,
    "log group": lambda p: p.client("logs").create_log_group(logGroupName=f"/aws/x/{p.name}", tags=p.pairs),
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


def test_what_is_left_of_every_kind_is_deleted_and_the_neighbours_stays() -> None:
    nothing = inventory()
    neighbour = Planter("a-b")
    for plant in PLANTS.values():
        plant(neighbour)
    before = inventory()
    mine = Planter("a")
    for plant in PLANTS.values():
        plant(mine)
    planted = left_over(before, inventory())
    assert planted.keys() >= PLANTS.keys()
    foreseen = find("a", Account())
    assert {thing.kind for thing in foreseen} >= PLANTS.keys()
    found = sweep("a", Account(), stuck_seconds=20)
    assert [(each.kind, each.why) for each in found if each.outcome != DELETED] == []
    assert left_over(before, inventory()) == {}
    assert left_over(inventory(), before) == {}
    sweep("a-b", Account(), stuck_seconds=20)
    assert left_over(nothing, inventory()) == {}


def test_a_bucket_whose_data_are_kept_stays_and_an_empty_one_goes() -> None:
    s3 = boto3.client("s3")
    kept = [{"Key": topology.TAG_DEPLOYMENT, "Value": "keeper"}, {"Key": topology.TAG_KEEP, "Value": "true"}]
    for name in ("shoal-keeper-full", "shoal-keeper-empty"):
        s3.create_bucket(Bucket=name)
        s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": kept})
    s3.put_object(Bucket="shoal-keeper-full", Key="runs/one/model.pt", Body=b"x")
    outcomes = {thing.identifier: (thing.outcome, thing.costs) for thing in sweep("keeper", Account())}
    assert outcomes == {"shoal-keeper-full": (KEPT, False), "shoal-keeper-empty": (DELETED, False)}
    assert s3.list_objects_v2(Bucket="shoal-keeper-full")["KeyCount"] == 1


def test_a_foreign_rule_that_names_a_group_is_taken_away_and_the_foreign_group_stays() -> None:
    planter, ec2 = Planter("tied"), boto3.client("ec2")
    foreign = ec2.create_security_group(GroupName="theirs", Description="x")["GroupId"]
    for source in ({"UserIdGroupPairs": [{"GroupId": planter.group()}]}, {"IpRanges": [{"CidrIp": "10.1.0.0/16"}]}):
        ec2.authorize_security_group_ingress(
            GroupId=foreign, IpPermissions=[{"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, **source}]
        )
    assert {thing.outcome for thing in sweep("tied", Account(), stuck_seconds=20)} == {DELETED}
    (group,) = ec2.describe_security_groups(GroupIds=[foreign])["SecurityGroups"]
    assert [rule["IpRanges"] for rule in group["IpPermissions"] if rule["IpRanges"]] == [[{"CidrIp": "10.1.0.0/16"}]]
    assert not any(rule["UserIdGroupPairs"] for rule in group["IpPermissions"])
    ec2.delete_security_group(GroupId=foreign)


def test_what_cannot_be_deleted_is_left_with_awss_reason() -> None:
    planter, ec2 = Planter("blocked"), boto3.client("ec2")
    group = planter.group()
    instance = ec2.run_instances(
        ImageId="ami-1", MinCount=1, MaxCount=1, SubnetId=planter.subnet(), SecurityGroupIds=[group]
    )["Instances"][0]["InstanceId"]
    found = {thing.kind: thing for thing in sweep("blocked", Account(), stuck_seconds=1)}
    assert found["security group"].outcome == LEFT
    assert f"dependent object: {instance}" in found["security group"].why
    assert not found["security group"].costs
    ec2.terminate_instances(InstanceIds=[instance])
    assert {thing.outcome for thing in sweep("blocked", Account(), stuck_seconds=20)} == {DELETED}


def test_what_has_no_region_may_be_the_deployments_of_another_one() -> None:
    planter = Planter("twin")
    planter.role()
    abroad = boto3.client("cloudformation", region_name="eu-west-1")
    template = json.dumps({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})
    abroad.create_stack(StackName=topology.stack_name("twin"), TemplateBody=template)
    assert sweep("twin", Account()) == []
    abroad.delete_stack(StackName=topology.stack_name("twin"))
    abroad.get_waiter("stack_delete_complete").wait(StackName=topology.stack_name("twin"), WaiterConfig={"Delay": 1})
    assert [(thing.kind, thing.outcome) for thing in sweep("twin", Account())] == [("iam role", DELETED)]


class Restricted(Account):
    """Credentials that may not do some operations; the emulator enforces no policies."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self._refused = refused

    def pages(self, service: str, operation: str, **parameters: Any) -> Iterator[Any]:
        if operation in self._refused:
            raise ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "not you"}}, operation)
        yield from super().pages(service, operation, **parameters)


def test_a_kind_that_may_not_be_listed_is_not_taken_for_gone() -> None:
    (unseen,) = sweep("nobody", Restricted("describe_volumes"))
    assert (unseen.kind, unseen.outcome, unseen.costs) == ("volume", LEFT, True)
    assert "cannot be listed (not you)" in unseen.why


def test_without_the_tagging_service_the_services_own_lists_do() -> None:
    planter = Planter("untold")
    planter.subnet()
    bucket(planter)
    said, *found = sorted(
        sweep("untold", Restricted("get_resources"), stuck_seconds=20), key=lambda it: it.kind != "other"
    )
    assert "cannot be asked (not you)" in said.why
    assert not said.costs
    assert sorted((thing.kind, thing.outcome) for thing in found) == [
        (kind, DELETED) for kind in ("s3 bucket", "subnet", "vpc")
    ]


def test_what_costs_money_and_is_not_ours_to_delete_is_a_failure() -> None:
    kms = boto3.client("kms")
    key = kms.create_key(Tags=[{"TagKey": topology.TAG_DEPLOYMENT, "TagValue": "keyed"}])["KeyMetadata"]["KeyId"]
    command = [Path(sys.executable).with_name("shoal"), "destroy", "keyed", "--yes"]
    done = subprocess.run(list(map(os.fspath, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert key in done.stdout
    assert "1 thing that costs money is still there" in done.stdout


def test_every_kind_but_keys_and_stacks_can_be_deleted() -> None:
    assert {name for name, kind in KINDS.items() if kind.delete is None} == {"cloudformation stack", "kms key"}
