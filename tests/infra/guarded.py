"""Small stacks with a guard in the embedded AWS, and methods that read their state."""

import itertools
import json
from datetime import UTC, timedelta

import pytest
from aws_cdk import App, DefaultStackSynthesizer, Environment, RemovalPolicy, Stack, Tags
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_emr as emr
from aws_cdk import aws_s3 as s3
from shoal_guard.handlers.guard import main

from common import names
from infra import parts, topology
from infra.guard import Guard, prices
from infra.storage import Buckets
from tests.infra.assemblies import publish
from tests.infra.variants import SHIPPED
from tests.waiting import until

_NUMBERED = (f"g{number}" for number in itertools.count(1))


class Guarded(Stack):
    def __init__(self, scope, deployment, spec):
        name = topology.stack_name(deployment)
        synthesizer = DefaultStackSynthesizer(generate_bootstrap_version_rule=False)
        super().__init__(scope, name, synthesizer=synthesizer, env=Environment(region="us-east-1"))
        Tags.of(self).add(names.TAG_DEPLOYMENT, deployment)
        self.guard = Guard(self, "Guard", spec=spec, deployment=deployment, data=self.data_bucket(spec.data))

    def data_bucket(self, spec):
        return s3.Bucket(self, "Data", removal_policy=RemovalPolicy.RETAIN if spec.keep else RemovalPolicy.DESTROY)


class Storing(Guarded):
    def data_bucket(self, spec):
        return Buckets(self, "Buckets", spec=spec, key=None).data


class Small(Guarded):
    """Stack with a guard, its data bucket, and one resource of each kind that costs by the hour."""

    def __init__(self, scope, deployment, spec):
        super().__init__(scope, deployment, spec)
        subnets = [ec2.SubnetConfiguration(name="Nodes", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)]
        vpc = ec2.Vpc(self, "Vpc", max_azs=1, subnet_configuration=subnets, restrict_default_security_group=False)
        image = ec2.MachineImage.generic_linux({"us-east-1": "ami-0a1b2c3d4e5f60718"})
        place = {"vpc": vpc, "vpc_subnets": ec2.SubnetSelection(subnets=vpc.isolated_subnets)}
        costly = []
        for group in spec.training:
            kind = ec2.InstanceType(group.instance_type)
            template = ec2.LaunchTemplate(self, f"{group.name}-Template", instance_type=kind, machine_image=image)
            limits = {"min_capacity": 0, "max_capacity": 2}
            costly.append(autoscaling.AutoScalingGroup(self, group.name, launch_template=template, **place, **limits))
        primary = {"instanceType": "m5.xlarge", "instanceCount": 1}
        costly.append(
            emr.CfnCluster(
                self,
                "Cluster",
                name=self.stack_name,
                release_label="emr-7.13.0",
                job_flow_role="nodes",
                service_role="service",
                instances={"keepJobFlowAliveWhenNoSteps": True, "masterInstanceGroup": primary},
            )
        )
        for each in costly:
            each.node.add_dependency(self.guard)


class Sharing(Guarded):
    def __init__(self, scope, deployment, spec):
        super().__init__(scope, deployment, spec)
        efs.CfnFileSystem(self, "Share", throughput_mode="elastic")
        ec2.Vpc(self, "Outside", max_azs=1, nat_gateways=1, restrict_default_security_group=False)


class Deployed:
    """Stack with a guard in the embedded AWS. `kind` names its class."""

    def __init__(self, client, out, *, becomes="CREATE_COMPLETE", kind="Small", name="", keep=True, **guard):
        self.client, self.name, self._out, self._kind = client, name or next(_NUMBERED), out, globals()[kind]
        spec = topology.load("demo", SHIPPED)
        limits = parts.GuardSpec(mail="ada@example.org", **guard)
        self.spec = spec.model_copy(update={"guard": limits, "data": parts.DataSpec(keep=keep)})
        self.cloudformation = client("cloudformation")
        self.create(becomes)
        self.queue, self.function = self._subscribe(), self.named("GuardFunction")

    def create(self, becomes="CREATE_COMPLETE"):
        self.stack = self.cloudformation.create_stack(
            StackName=self.stack_name,
            TemplateBody=self.template(),
            DisableRollback=True,
            Capabilities=["CAPABILITY_IAM"],
            RoleARN="arn:aws:iam::000000000000:role/execution",
        )["StackId"]
        self.created = self.becomes(becomes)["CreationTime"]

    def update(self, template):
        named = {"StackName": self.stack_name, "Capabilities": ["CAPABILITY_IAM"]}
        self.cloudformation.update_stack(**named, TemplateBody=template)

    def becomes(self, status):
        """Wait until nothing is in progress, check the stack's status, and return the stack."""

        def stack():
            (found,) = self.cloudformation.describe_stacks(StackName=self.stack)["Stacks"]
            return None if found["StackStatus"].endswith("IN_PROGRESS") else found

        settled = dict(until(stack))
        events = self.cloudformation.describe_stack_events(StackName=self.stack)["StackEvents"]
        assert settled["StackStatus"] == status, [each.get("ResourceStatusReason") for each in events]
        return settled

    @property
    def stack_name(self):
        return topology.stack_name(self.name)

    @property
    def prices(self):
        return prices(self.spec)

    def template(self):
        """The template; its assets are in the bucket where CDK would have put them."""
        app = App(outdir=str(self._out), analytics_reporting=False, builtin_cloud_formation_validation=False)
        self._kind(app, self.name, self.spec)
        app.synth()
        publish(self._out, self.stack_name)
        return (self._out / f"{self.stack_name}.template.json").read_text()

    def _resources(self):
        return list(self.cloudformation.describe_stack_resources(StackName=self.stack)["StackResources"])

    def physical(self, part):
        """Return the one resource with a type that ends with `part`."""
        (name,) = (each["PhysicalResourceId"] for each in self._resources() if each["ResourceType"].endswith(part))
        return str(name)

    def named(self, start):
        """Return the one resource with a logical ID of `start` and the digits that the CDK adds."""
        ids = {each["LogicalResourceId"].rstrip("0123456789ABCDEF"): each for each in self._resources()}
        return str(ids[start]["PhysicalResourceId"])

    def groups(self):
        kind = "AWS::AutoScaling::AutoScalingGroup"
        return [each["PhysicalResourceId"] for each in self._resources() if each["ResourceType"] == kind]

    def raise_groups(self):
        """Start one node in each group, and return the launch times by instance."""
        scaling = self.client("autoscaling")
        for group in self.groups():
            scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)

        def serving():
            found = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=self.groups())["AutoScalingGroups"]
            states = {each["InstanceId"]: each["LifecycleState"] for group in found for each in group["Instances"]}
            return [*states] if list(states.values()) == ["InService"] * len(found) else []

        described = self.client("ec2").describe_instances(InstanceIds=until(serving))
        instances = [each for reservation in described["Reservations"] for each in reservation["Instances"]]
        return {each["InstanceId"]: each["LaunchTime"] for each in instances}

    def desired(self):
        found = self.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=self.groups())
        return [group["DesiredCapacity"] for group in found["AutoScalingGroups"]]

    def cluster_state(self):
        cluster = self.client("emr").describe_cluster(ClusterId=self.physical("EMR::Cluster"))["Cluster"]
        return str(cluster["Status"]["State"]).replace("TERMINATING", "TERMINATED")

    def sign(self, instance, suffix):
        """Write a status or activity marker of a node, and return its time."""
        place = {"Bucket": self.bucket, "Key": f"nodes/{instance}.{suffix}"}
        self.client("s3").put_object(**place, Body=b"")
        return self.client("s3").head_object(**place)["LastModified"]

    def want(self, *runs):
        queue = json.dumps({"version": 2, "runs": runs})
        self.client("s3").put_object(Bucket=self.bucket, Key=f"requests/{self.name}.json", Body=queue.encode())

    def requested_runs(self):
        found = self.client("s3").get_object(Bucket=self.bucket, Key=f"requests/{self.name}.json")
        return list(json.loads(found["Body"].read())["runs"])

    def end(self, run, token):
        """Write the end of a launch, like its nodes."""
        end = json.dumps({"version": 2, "token": token, "outcome": "stopped", "error": ""})
        self.client("s3").put_object(Bucket=self.bucket, Key=f"runs/{run}/ended.json", Body=end.encode())

    @property
    def bucket(self):
        return self.physical("S3::Bucket")

    def invoke(self, now):
        event = json.dumps({"time": now.astimezone(UTC).isoformat()})
        answer = self.client("lambda").invoke(FunctionName=self.function, Payload=event)
        body = answer["Payload"].read()
        return dict(json.loads(body)) if "FunctionError" in answer else {}

    def wake(self, now):
        """Like `invoke`, but in this process, which is cheaper. The emulator's faults apply only to such a round."""
        function = self.client("lambda").get_function_configuration(FunctionName=self.function)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SETTINGS", function["Environment"]["Variables"]["SETTINGS"])
            main.handler({"time": now.astimezone(UTC).isoformat()}, None)

    def age(self, hours):
        return self.created + timedelta(hours=hours)

    def after(self, hours):
        self.wake(self.age(hours))

    def mails(self):
        """Return the subjects of the emails since the last call."""
        sqs, found = self.client("sqs"), []
        while messages := sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10).get("Messages", []):
            for message in messages:
                found.append(json.loads(message["Body"])["Subject"])
                sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=message["ReceiptHandle"])
        return found

    def log(self):
        logs, group = self.client("logs"), self.physical("Logs::LogGroup")
        return "\n".join(event["message"] for event in logs.filter_log_events(logGroupName=group)["events"])

    def account(self):
        parameter = self.client("ssm").get_parameter(Name=names.guard_parameter(self.name))["Parameter"]
        return dict(json.loads(parameter["Value"]))

    def _subscribe(self):
        """Create a queue that receives the messages of the topic, and return its URL."""
        sqs = self.client("sqs")
        queue = str(sqs.create_queue(QueueName=self.name)["QueueUrl"])
        arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        sns = {"Service": "sns.amazonaws.com"}
        may = {"Effect": "Allow", "Principal": sns, "Action": "sqs:SendMessage", "Resource": arn}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [may]})
        sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})
        self.client("sns").subscribe(TopicArn=self.physical("SNS::Topic"), Protocol="sqs", Endpoint=arn)
        return queue
