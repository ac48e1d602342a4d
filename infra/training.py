"""Creates the node groups of a topology. Each node group is one Auto Scaling group.

Do not set the desired capacity of the groups, because a later deployment would set it again and stop an active training
run. Groups start at their minimum, zero, and `shoal train` scales them up. Only groups with `start: deploy` have a
desired capacity.
"""

from collections.abc import Mapping, Sequence

import jsii
from aws_cdk import Annotations, CfnDynamicReference, CfnDynamicReferenceService, Stack, Tags
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct
from shoal_guard.grants import READ, accept, allow_objects, explain

from common import names
from infra import catalog, libraries, parts, sizing
from infra.network import Network
from infra.share import Share
from infra.stage import AGENT, WRITE, SharedSettings, Stage, allow_inputs, node_role

_TRAIN = "bootstrap/gpu/train.sh"


class Training(Stage):
    """Node groups of a deployment. They share a role and a security group, which allows connections only between the
    nodes."""

    nodes: ec2.SecurityGroup

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        deployment: SharedSettings,
        *,
        network: Network,
        share: Share | None,
    ) -> None:
        """Create the node groups. `share` is the EFS file system that the nodes mount."""
        spec = deployment.spec
        super().__init__(
            scope,
            construct_id,
            deployment,
            wheels=libraries.of_gpu_nodes(spec),
            packages=(*deployment.trainer, *AGENT, _TRAIN, *(["jobs"] if libraries.reads_texts(spec) else [])),
            script="gpu/boot.sh",
        )
        self._key = deployment.key
        self.role = node_role(self, shell=network.shell)
        self._profile = iam.InstanceProfile(self, "NodeProfile", role=self.role)
        self.nodes = ec2.SecurityGroup(
            self, "Nodes", vpc=network.vpc, allow_all_outbound=False, description="GPU nodes"
        )
        for allow in (self.nodes.add_ingress_rule, self.nodes.add_egress_rule):
            allow(self.nodes, ec2.Port.all_traffic(), "Nodes of the deployment talk to each other")
        # The S3 gateway endpoint has no security group that a rule could name. So the rule allows all destinations, but
        # the subnets have no other routes.
        self.nodes.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.HTTPS, "Nodes call AWS services")
        # EC2 can seldom place nodes of several types close together, and a training run needs all of its nodes.
        # Reserved capacity has a fixed location, which can be outside this placement group. The nodes of a Capacity
        # Block are already close together.
        trainers = [each for each in spec.training if each.role == "train" and not each.reservation]
        together = (
            sum(each.count for each in trainers) > 1 and len({name for each in trainers for name in each.types}) == 1
        )
        self._placement_group = (
            ec2.PlacementGroup(self, "Place", strategy=ec2.PlacementGroupStrategy.CLUSTER) if together else None
        )
        common = {
            "DEPLOYMENT": deployment.name,
            "DATA_BUCKET": deployment.buckets.data.bucket_name,
            "SHARE_KIND": spec.share or "none",
            "SHARE_ID": share.files.file_system_id if share else "",
            "CODE_URL": self.payload.code,
            "WHEELS_URL": self.payload.wheels,
            "AWS_DEFAULT_REGION": Stack.of(self).region,
        }
        self.machines = [
            self._group(each, network, _user_data(_of_group(common, each), self.payload.script))
            for each in spec.training
        ]
        for group in self.machines:
            # The endpoints of the network and the share must outlive the nodes.
            group.node.add_dependency(self.role, *network.node_dependencies, *([share] if share else []))
        self.outputs = {names.OUTPUT_ON_NODE: spec.trainers[0].instance_type} if spec.preprocesses_on_node else {}
        self._grant(deployment, network, share)

    def _grant(self, deployment: SharedSettings, network: Network, share: Share | None) -> None:
        buckets, role = deployment.buckets, self.role
        self.payload.allow_download(role)
        read = (names.DATASETS, names.REQUESTS, names.RUNS)
        allow_objects(role, buckets.data, READ, under=read)
        allow_objects(role, buckets.data, (*WRITE, "s3:DeleteObject"), under=(deployment.runs,))
        allow_objects(role, buckets.data, (*READ, *WRITE), under=(names.NODES,))
        explain(
            role, ["s3:AbortMultipartUpload"], "The grant removes the parts of a failed upload, which would cost money."
        )
        explain(
            role,
            ["s3:DeleteObject"],
            "A new checkpoint replaces the previous one, but only in runs that last long enough for two checkpoints.",
        )
        allow_inputs(role, deployment.spec.inputs)
        if deployment.spec.preprocesses_on_node:
            allow_objects(role, buckets.raw, READ)
        network.allow_from(self.nodes)
        if share:
            share.allow_from(self.nodes, role)

    def _group(self, spec: parts.NodeGroup, network: Network, user_data: ec2.UserData) -> autoscaling.AutoScalingGroup:
        """Create an Auto Scaling group of zero to `spec.count` nodes."""
        scope = Construct(self, spec.name)
        template = self._template(scope, spec, user_data)
        spot = spec.market == "spot"
        group = autoscaling.AutoScalingGroup(
            scope,
            "Default",
            vpc=network.vpc,
            # If this zone has no capacity, `shoal/aws/scale_up.py` uses the other zones.
            vpc_subnets=ec2.SubnetSelection(subnets=[network.subnet]),
            launch_template=None if spot else template,
            mixed_instances_policy=_spot(template, spec.instance_types) if spot else None,
            min_capacity=0,
            desired_capacity=spec.count if spec.start == "deploy" else None,
            max_capacity=spec.count,
            # No Capacity Rebalancing, because Auto Scaling could terminate a training node before its replacement has
            # booted.
        )
        Annotations.of(group).acknowledge_warning(
            "@aws-cdk/aws-autoscaling:desiredCapacitySet",
            "CloudFormation resets the desired capacity only when the group changes.",
        )
        if spot:
            reason = "The disk is encrypted. The rule cannot read a launch template in a mixed-instances policy."
            accept(group, "EC26", reason)
        accept(group, "AS3", "`shoal train` scales the group and watches its nodes.")
        for part in (template, group):
            Tags.of(part).add("Name", f"{Stack.of(self).stack_name}-{spec.name}")
            Tags.of(part).add(names.TAG_GROUP, spec.name)
            Tags.of(part).add(names.TAG_GPUS, str(spec.gpus))
            Tags.of(part).add(names.TAG_MARKET, spec.market)
            Tags.of(part).add(names.TAG_START, spec.start)
            Tags.of(part).add(names.TAG_ROLE, spec.role)
            if spec.efa:
                Tags.of(part).add(names.TAG_EFA, "true")
        return group

    def _template(self, scope: Construct, spec: parts.NodeGroup, user_data: ec2.UserData) -> ec2.LaunchTemplate:
        together = spec.role == "train" and not spec.reservation
        template = ec2.LaunchTemplate(
            scope,
            "Template",
            instance_type=ec2.InstanceType(spec.instance_type),
            machine_image=_Image(spec),
            instance_profile=self._profile,
            security_group=self.nodes,
            placement_group=self._placement_group if together else None,
            require_imdsv2=True,
            http_put_response_hop_limit=1,
            user_data=user_data,
            block_devices=[
                ec2.BlockDevice(
                    device_name=sizing.ROOT_DEVICE,
                    volume=ec2.BlockDeviceVolume.ebs(
                        sizing.GPU_ROOT_GIB,
                        encrypted=True,
                        kms_key=self._key,
                        volume_type=ec2.EbsDeviceVolumeType.GP3,
                        delete_on_termination=True,
                    ),
                )
            ],
        )
        resource = template.node.default_child
        assert isinstance(resource, ec2.CfnLaunchTemplate)
        if spec.reservation:
            target = {"CapacityReservationTarget": {"CapacityReservationId": spec.reservation}}
            resource.add_property_override("LaunchTemplateData.CapacityReservationSpecification", target)
        if spec.market == "capacity-block":
            resource.add_property_override("LaunchTemplateData.InstanceMarketOptions", {"MarketType": spec.market})
        if spec.efa and (efa := catalog.find(spec.instance_type).efa):
            # EC2 accepts security groups either for the instance or for its interfaces, not for both.
            resource.add_property_deletion_override("LaunchTemplateData.SecurityGroupIds")
            interfaces = [_interface(card, self.nodes.security_group_id) for card in range(efa.cards)]
            resource.add_property_override("LaunchTemplateData.NetworkInterfaces", interfaces)
        return template


def _interface(card: int, security_group: str) -> dict[str, object]:
    """Return the EFA interface of a network card. Only the interface of the first card has an IP address.

    Source: AWS, "Maximize network bandwidth on Amazon EC2 instances with multiple network cards".
    """
    return {
        "NetworkCardIndex": card,
        "DeviceIndex": 1 if card else 0,
        "InterfaceType": "efa-only" if card else "efa",
        "Groups": [security_group],
        "DeleteOnTermination": True,
    }


@jsii.implements(ec2.IMachineImage)
class _Image:
    """Machine image of a node group: the image in the topology, or the image that AWS's SSM parameter names at
    deployment.

    Do not resolve the parameter when a node starts. A group of spot instances refuses such a launch template, and every
    update of a group would need the permission to read the parameter.
    """

    def __init__(self, spec: parts.NodeGroup) -> None:
        self._spec = spec

    def get_image(self, _scope: Construct) -> ec2.MachineImageConfig:
        parameter = catalog.image_of(self._spec.instance_type)
        reference = CfnDynamicReference(CfnDynamicReferenceService.SSM, parameter).to_string()
        return ec2.MachineImageConfig(
            image_id=self._spec.image or reference,
            os_type=ec2.OperatingSystemType.LINUX,
            user_data=ec2.UserData.for_linux(),
        )


def _spot(template: ec2.LaunchTemplate, several: Sequence[str]) -> autoscaling.MixedInstancesPolicy:
    """Return the policy of a group that has only spot nodes, of the template's instance type or of the types in
    `several`.

    If AWS has no spot capacity, `shoal/aws/scale_up.py` changes the policy to on-demand nodes. For these, AWS
    uses the first available type of the list.
    """
    types = [autoscaling.LaunchTemplateOverrides(instance_type=ec2.InstanceType(name)) for name in several]
    return autoscaling.MixedInstancesPolicy(
        launch_template=template,
        launch_template_overrides=types or None,
        instances_distribution=autoscaling.InstancesDistribution(
            on_demand_percentage_above_base_capacity=0,
            spot_allocation_strategy=autoscaling.SpotAllocationStrategy.PRICE_CAPACITY_OPTIMIZED,
        ),
    )


def _of_group(common: Mapping[str, str], spec: parts.NodeGroup) -> dict[str, str]:
    """Return the environment variables for the boot script on the nodes of a group."""
    gpu = catalog.find(spec.instance_type).gpu
    return {**common, "GROUP": spec.name, "GPUS": str(gpu.count if gpu else 0), "RANKS": str(spec.gpus)}


# If a node's clock is 15 minutes off, S3 refuses the node's signed requests, including the report of a failed boot. At
# boot, chronyd might not have set the clock yet. So the node first compares its clock with S3's clock, which S3 sends
# in response to unsigned requests.
_CLOCK = """\
set_clock() {
    local there off
    there=$(curl --silent --head --max-time 10 "https://s3.$AWS_DEFAULT_REGION.amazonaws.com" |
        sed -n 's/^date: //Ip' | tr -d '\\r') && [ -n "$there" ] || return
    off=$(($(date --date "$there" +%s) - $(date +%s)))
    [ "${off#-}" -gt 60 ] || return
    date --set "$there" >/dev/null || return
    echo "this node's clock was $off seconds behind S3's, by which it was set" >>/var/log/shoal-boot.log
}
[ -n "${NODE_ROOT:-}" ] || set_clock || true"""

# Without the AWS CLI, a node can neither download the boot script nor report.
_AWS = """\
[ -n "${NODE_ROOT:-}" ] || command -v aws >/dev/null ||
    dnf install --quiet --assumeyes --disablerepo='*' --enablerepo=amazonlinux awscli-2 || {
    echo "this image has no aws, and dnf cannot install awscli-2 from Amazon Linux's repository in S3" >&2
    exit 1
}"""


def _user_data(environment: Mapping[str, str], script: str) -> ec2.UserData:
    """Return user data that exports the variables of `environment`, then downloads and runs the boot script.

    All paths are below NODE_ROOT, which is empty on AWS.
    """
    user_data = ec2.UserData.for_linux()
    user_data.add_commands(
        "set -euo pipefail",
        *(f"export {name}={_quoted(value)}" for name, value in environment.items()),
        *_CLOCK.splitlines(),
        *_AWS.splitlines(),
        'mkdir -p "${NODE_ROOT:-}/tmp"',
        f'aws s3 cp {_quoted(script)} "${{NODE_ROOT:-}}/tmp/boot.sh"',
        'bash "${NODE_ROOT:-}/tmp/boot.sh"',
    )
    return user_data


def _quoted(value: str) -> str:
    """Quote a word for a shell. It is quoted even if it looks safe, because CloudFormation inserts values later."""
    return "'" + value.replace("'", "'\"'\"'") + "'"
