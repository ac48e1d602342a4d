"""Constructs for any CDK app in Python, of which Shoal's own stack is made: machines with GPUs, an EMR cluster, a
shared folder, a bucket that goes with its stack, and a guard, by which a stack ends itself at an age or a budget.

    from shoal.cdk import Guard

    Guard(stack, "Guard", max_hours=8, budget=20, mail="me@example.org", dollars_an_hour=0.05)

They need `aws-cdk-lib`, which comes with Shoal, and no topology.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import jsii
from aws_cdk import Annotations, Aspects, IAspect, IStableAnyProducer, Lazy, Stack, Tags
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm
from constructs import Construct, IConstruct
from pydantic import ValidationError

from common.errors import UsageError
from infra.clean_bucket import CleanBucket
from infra.cleanup import Cleanup
from infra.emr_cluster import Cluster, Place
from infra.gpu_nodes import Machine, NodeGroup
from infra.parts import GuardSpec, PreprocessingSpec
from infra.parts import NodeGroup as NodeGroupSpec
from infra.roles import LIST, WRITE, allow_objects
from infra.share import Share
from infra.stack_guard import StackGuard
from infra.stack_prices import StackPrices, prices_of

__all__ = ["CleanBucket", "EmrCluster", "EmrNodes", "GpuNodes", "Guard", "Share"]

_TAG = "shoal:guarded"
_LOGS = "emr-logs/"
_TAG_EMR = "shoal:emr-of"
"""With the stack's name, of the security groups whose rules the stack's cleanup may remove."""
_LONGEST_NAME = 70
"""Of the stack's, in the name of a budget, of which an account has one in all regions."""


class Guard(StackGuard):
    """Ends the stack that it is in, from inside the account: a function that AWS runs every five minutes.

    At the end of the stack's life, or when its budget is spent, it sets auto scaling groups to zero, terminates EMR
    clusters, and deletes the stack; and before, it ends EMR clusters that are idle. Nothing is deleted without a
    warning by mail, at least ten minutes earlier, where there is an address.

    All other resources of the stack are created after the guard and deleted before it, so that it also ends a stack
    that was created only in part, and they get the tag `shoal:guarded`. What CloudFormation cannot delete stays: a
    bucket that is not empty and has no `auto_delete_objects`, a stack with `termination_protection` or one that was
    deployed without a role for CloudFormation (the CDK gives it one), and what has the
    removal policy RETAIN, as databases of RDS leave a snapshot. `shoal sweep --stack NAME` lists it.
    """

    def __init__(
        self,
        scope: Stack,
        construct_id: str,
        *,
        max_hours: int = 12,
        budget: float | None = None,
        mail: str | None = None,
        idle_minutes: int = 30,
        dollars_an_hour: float | None = None,
    ) -> None:
        """Guard a stack.

        Args:
            scope: The stack. What it has when it is synthesised is what counts.
            construct_id: The construct's id.
            max_hours: Whole hours that it lives from its first deployment with the guard on, 1 to 720. More can be
                added while it lives, as the warning says, by a parameter of Systems Manager.
            budget: Dollars since then, counted every five minutes: instances and EMR clusters of the stack at
                on-demand prices with a public address each, NAT gateways, elastic addresses, interface endpoints, and
                `dollars_an_hour`. Volumes, requests and traffic do not count. Without it, no limit.
            mail: An address for warnings; without one there are none.
            idle_minutes: How long an EMR cluster may be idle, 5 to 10,080 minutes.
            dollars_an_hour: What all else costs that runs as long as the stack, such as a database; needed with a
                budget where the stack has such things, and else an error of the synthesis.

        Raises:
            ShoalError: A value is not within its bounds.
        """
        spec = _valid("Guard", GuardSpec, max_hours=max_hours, budget=budget, mail=mail, idle_minutes=idle_minutes)
        if dollars_an_hour is not None and not 0 <= dollars_an_hour < math.inf:
            raise UsageError(f"Guard: dollars_an_hour: {dollars_an_hour} is no number of dollars from 0 on")
        found = _Found(scope, dollars_an_hour)
        name = scope.stack_name
        account, extension = f"/shoal-guard/{name}/account", f"/shoal-guard/{name}/hours"
        super().__init__(
            scope,
            construct_id,
            name=name,
            spec=spec,
            tag=_TAG,
            groups="*",
            budget_name=f"{name[:_LONGEST_NAME]}-guard-{scope.region}",
            settings={
                "account": account,
                "extension": extension,
                "gpu": Lazy.any(found.of("instances")),
                "emr": Lazy.any(found.of("of_emr")),
                "standing": Lazy.any(found.of("standing")),
                "unpriced": Lazy.any(found.of("unpriced")),
            },
        )
        for child, parameter, text in (("Account", account, "{}"), ("Hours", extension, "0")):
            ssm.StringParameter(self, child, parameter_name=parameter, string_value=text)
        clock = self.node.find_child("Clock")
        for part in self.node.children:
            if part is not clock:
                clock.node.add_dependency(part)
        Tags.of(scope).add(_TAG, name)
        Aspects.of(scope).add(_AfterGuard(scope, self, found if budget else None))


class _Found:
    """The prices of a stack, read once when it is synthesised."""

    def __init__(self, stack: Stack, dollars_an_hour: float | None) -> None:
        self._stack, self._given = stack, dollars_an_hour

    @cached_property
    def prices(self) -> StackPrices:
        """What the stack costs; what has no price is in the dollars that were given."""
        found = prices_of(self._stack)
        if self._given is not None:
            found.standing += self._given
            found.unpriced.clear()
        return found

    def of(self, field: str) -> "_Price":
        return _Price(self, field)


@jsii.implements(IStableAnyProducer)
class _Price:
    """One field of them."""

    def __init__(self, found: _Found, field: str) -> None:
        self._found, self._field = found, field

    def produce(self) -> Any:
        value = getattr(self._found.prices, self._field)
        return ", ".join(sorted(value)) if isinstance(value, set) else value


@jsii.implements(IAspect)
class _AfterGuard:
    """Has all other resources of the stack depend on the guard; and a budget needs the price of each."""

    def __init__(self, stack: Stack, guard: Guard, found: _Found | None) -> None:
        self._stack, self._guard, self._found = stack, guard, found

    def visit(self, node: IConstruct) -> None:
        if node.node.path != self._stack.node.path:
            return
        clock = self._guard.node.find_child("Clock")
        for child in self._stack.node.children:
            if child.node.path != self._guard.node.path:
                child.node.add_dependency(clock)
        if self._found and (unpriced := self._found.prices.unpriced):
            Annotations.of(self._guard).add_error(
                f"the budget cannot be kept without the prices of {', '.join(sorted(unpriced))}; give the guard their "
                "sum as dollars_an_hour"
            )


@jsii.implements(ec2.IConnectable, iam.IGrantable)
class GpuNodes(Construct):
    """Machines of one kind with GPUs: an auto scaling group from zero to `count`, with AWS's PyTorch image.

    They have encrypted volumes of 150 GiB, take the metadata service's second version alone, and reach each other.
    Somebody sets the group's desired capacity (the nodes, with `allow_scaling`), or `started` does. For unequal GPUs
    take one of these for each kind, let them in with `a.connections.allow_from(b, ec2.Port.all_traffic())`, and
    balance the training by `shoal.balance`. Permissions are granted to the nodes as to any role:
    `bucket.grant_read(nodes)`. All else is set at `template`, a launch template, and `group`, an auto scaling group.
    """

    group: autoscaling.AutoScalingGroup
    template: ec2.LaunchTemplate
    role: iam.Role

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        instance_type: str,
        count: int = 1,
        market: Literal["on-demand", "spot"] = "on-demand",
        started: bool = False,
        vpc_subnets: ec2.SubnetSelection | None = None,
        user_data: ec2.UserData | None = None,
    ) -> None:
        """Create the group.

        Args:
            scope: In a stack.
            construct_id: The construct's id: letters, digits and single dashes, at most 40.
            vpc: The network.
            instance_type: A type with GPUs that Shoal knows, such as g5.xlarge.
            count: The most machines that there may be, 1 to 1000.
            market: on-demand, or spot for AWS's spare capacity.
            started: Whether all of them start with the stack.
            vpc_subnets: Where they may be (default: the private subnets).
            user_data: What they run when they boot (default: nothing).

        Raises:
            ShoalError: A value is not within its bounds, or the type is not known or has no GPU.
        """
        spec = _valid(
            "GpuNodes",
            NodeGroupSpec,
            name=construct_id,
            instance_type=instance_type,
            count=count,
            market=market,
            start="deploy" if started else "train",
        )
        super().__init__(scope, construct_id)
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        self._access = ec2.SecurityGroup(self, "Access", vpc=vpc, description=f"Nodes of {construct_id}")
        made = NodeGroup(
            self,
            "Default",
            spec=spec,
            user_data=user_data,
            machine=Machine(
                vpc=vpc,
                subnets=vpc_subnets,
                profile=iam.InstanceProfile(self, "Profile", role=self.role),
                security_group=self._access,
                placement_group=None,
                key=None,
            ),
        )
        self.group, self.template = made.group, made.template
        self.connections.allow_internally(ec2.Port.all_traffic(), "Nodes of the group talk to each other")
        self.group.node.add_dependency(self.role, *_ways_out(vpc))

    def allow_scaling(self) -> None:
        """Let the nodes set the desired capacity of their own group, such as to zero at the end of their work."""
        # The group depends on the role's own policy, which therefore cannot name it.
        actions, group = ["autoscaling:SetDesiredCapacity"], self.group.auto_scaling_group_arn
        iam.Policy(
            self,
            "Scaling",
            roles=[self.role],
            statements=[iam.PolicyStatement(actions=actions, resources=[group])],
        )

    @property
    def connections(self) -> ec2.Connections:
        """Who may reach the machines, and whom they reach: everybody."""
        return self._access.connections

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The machines' role."""
        return self.role.grant_principal


@dataclass(frozen=True, kw_only=True)
class EmrNodes:
    """The core or task nodes of an `EmrCluster`: how many, of which type, and whether on demand or spot."""

    instance_type: str
    count: int = 1
    market: Literal["on-demand", "spot"] = "on-demand"


@jsii.implements(iam.IGrantable)
class EmrCluster(Cluster):
    """An EMR cluster with Hadoop and Spark in a private subnet, which its stack can always delete.

    It waits for steps, and terminates itself when it has been idle. EMR adds rules to the security groups of its nodes
    that CloudFormation does not know, so that stacks with such clusters fail to be deleted; here a function removes
    them first. It has EMR's managed policy of today (v2) and the tags that this wants, S3's objects encrypted, the
    metadata service's second version alone, and no key for SSH. Grant its nodes what steps read and write:
    `bucket.grant_read_write(cluster)`, and name them as writers: `bucket.written_by(cluster.cluster)`. All else is set
    at `cluster`, a `CfnCluster`, such as its applications.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        log: s3.IBucket,
        primary: str = "m5.xlarge",
        core: EmrNodes | None = None,
        task: EmrNodes | None = None,
        release: str = "emr-7.13.0",
        idle_minutes: int = 30,
    ) -> None:
        """Create the cluster.

        Args:
            scope: In a stack.
            construct_id: The construct's id.
            vpc: The network. The cluster is in its first private subnet, from which it must reach S3; an existing one
                needs EMR's tag, as a warning says.
            log: Where EMR writes its logs, below `emr-logs/`. A `CleanBucket` is emptied after the cluster is gone.
            primary: The primary node's type; without core nodes it does all of the work.
            core: The nodes that also hold HDFS.
            task: More nodes, which need core nodes beside them.
            release: A release of EMR 7.
            idle_minutes: How long it may be idle, 5 to 10,080 minutes.

        Raises:
            ShoalError: A value is not within its bounds, EMR does not run on a type, types differ in their processors'
                architecture, or the network has no private subnet.
        """
        nodes = {name: asdict(each) for name, each in (("core", core), ("task", task)) if each}
        idle = _valid("EmrCluster", GuardSpec, idle_minutes=idle_minutes).idle_minutes
        found = [*vpc.private_subnets, *vpc.isolated_subnets]
        if not found:
            raise UsageError(f"EmrCluster: {construct_id}: the network has no private subnet; EMR wants one.")
        stack = Stack.of(scope)
        super().__init__(
            scope,
            construct_id,
            name=f"{stack.stack_name}-{construct_id}",
            spec=_valid("EmrCluster", PreprocessingSpec, primary={"instance_type": primary}, release=release, **nodes),
            idle_minutes=idle,
            place=Place(vpc=vpc, subnet=found[0], after=_ways_out(vpc)),
            log=log,
            log_prefix=_LOGS,
        )
        allow_objects(self.role, log, WRITE, under=(_LOGS,), listing=(*LIST, "s3:GetBucketLocation"))
        if log.encryption_key:
            log.encryption_key.grant_encrypt_decrypt(self.role)
        if found[0].node.default_child is None:
            Annotations.of(self).add_warning_v2(
                "shoal:emr-subnet",
                "EMR starts nodes only in a subnet with the tag for-use-with-amazon-emr-managed-policies: true, which "
                "this stack cannot give to an existing one; type: aws ec2 create-tags --resources SUBNET --tags "
                "Key=for-use-with-amazon-emr-managed-policies,Value=true",
            )
        if isinstance(log, CleanBucket):
            log.written_by(self.cluster)
        Tags.of(self).add(_TAG_EMR, stack.stack_name, include_resource_types=["AWS::EC2::SecurityGroup"])
        Cleanup.of(self).allow_revoke_group_rules(_TAG_EMR, stack.stack_name)

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The role of the cluster's nodes."""
        return self.role.grant_principal


def _ways_out(vpc: ec2.IVpc) -> list[IConstruct]:
    """What nodes need of a network of the same app, routes and endpoints: to be there first, and to go last."""
    return [vpc] if isinstance(vpc, ec2.Vpc) else []


_Spec = TypeVar("_Spec")


def _valid(what: str, spec: Callable[..., _Spec], **values: Any) -> _Spec:
    """The values of a construct. Raises UsageError with the first that is not within its bounds."""
    try:
        return spec(**values)
    except ValidationError as error:
        (first, *_) = error.errors()
        why = first.get("ctx", {}).get("error", first["msg"])
        where = (*first["loc"], *getattr(why, "field", ()))
        raise UsageError(f"{what}: {'.'.join(map(str, where))}: {why}") from None
