"""The GPU nodes: one auto scaling group for each node group of the topology.

Easy to get wrong: the groups are made without a desired capacity. They start at their minimum, zero, and a later
deployment leaves alone what `shoal train` has raised; a stated zero would end a running training.
"""

from collections.abc import Sequence

from aws_cdk import Stack, Tags
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra import sizing, topology
from infra.network import Network
from infra.payload import Payload
from infra.roles import accept, node_role
from infra.storage import Share

IMAGE_PARAMETER = (
    "/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch-2.13-amazon-linux-2023/latest/ami-id"
)
"""AWS's deep-learning image: driver, NCCL, EFA, Systems Manager's agent, and Python with PyTorch in /opt/pytorch."""


class Training(Construct):
    """All node groups: one role and one security group, in which nodes reach each other and nobody reaches them."""

    role: iam.Role
    nodes: ec2.SecurityGroup
    groups: list[autoscaling.AutoScalingGroup]
    payload: Payload

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        wanted: Sequence[topology.Group],
        deployment: str,
        network: Network,
        data: s3.Bucket,
        share: Share | None,
        payload: Payload,
    ) -> None:
        """Build the groups, at zero nodes; `role` may read and write nothing yet."""
        super().__init__(scope, construct_id)
        self.payload = payload
        self.role = node_role(self, "NodeRole")
        self._profile = iam.InstanceProfile(self, "NodeProfile", role=self.role)
        self.nodes = ec2.SecurityGroup(
            self, "Nodes", vpc=network.vpc, allow_all_outbound=False, description="GPU nodes"
        )
        for allow in (self.nodes.add_ingress_rule, self.nodes.add_egress_rule):
            allow(self.nodes, ec2.Port.all_traffic(), "Nodes of the deployment talk to each other")
        # S3's gateway has no security group to name; no route leads anywhere else.
        self.nodes.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.HTTPS, "Nodes call AWS services")
        environment = {
            "DEPLOYMENT": deployment,
            "DATA_BUCKET": data.bucket_name,
            "SHARE_ID": share.files.file_system_id if share else "",
            "CODE_URL": payload.code,
            "WHEELS_URL": payload.wheels,
            "AWS_DEFAULT_REGION": Stack.of(self).region,
        }
        self.groups = [
            self._group(each, network, _user_data({**environment, "GROUP": each.name}, payload.script))
            for each in wanted
        ]
        for group in self.groups:
            # The way to S3 and the folder must be there before nodes and outlive them.
            group.node.add_dependency(self.role, *network.paths, *([share] if share else []))

    def _group(self, wanted: topology.Group, network: Network, user_data: ec2.UserData) -> autoscaling.AutoScalingGroup:
        template = ec2.LaunchTemplate(
            self,
            f"{wanted.name}-Template",
            instance_type=ec2.InstanceType(wanted.instance_type),
            machine_image=ec2.MachineImage.resolve_ssm_parameter_at_launch(
                IMAGE_PARAMETER, os=ec2.OperatingSystemType.LINUX
            ),
            instance_profile=self._profile,
            security_group=self.nodes,
            require_imdsv2=True,
            http_put_response_hop_limit=1,
            user_data=user_data,
            block_devices=[
                ec2.BlockDevice(
                    device_name="/dev/xvda",
                    volume=ec2.BlockDeviceVolume.ebs(
                        sizing.GPU_ROOT_GIB, encrypted=True, volume_type=ec2.EbsDeviceVolumeType.GP3
                    ),
                )
            ],
        )
        group = autoscaling.AutoScalingGroup(
            self,
            wanted.name,
            vpc=network.vpc,
            vpc_subnets=network.subnets,
            launch_template=template,
            min_capacity=0,
            max_capacity=wanted.count,
        )
        for part in (template, group):
            Tags.of(part).add("Name", f"{Stack.of(self).stack_name}-{wanted.name}")
            Tags.of(part).add(topology.TAG_GROUP, wanted.name)
            Tags.of(part).add(topology.TAG_GPUS, str(wanted.gpus))
        accept(group, "AS3", "`shoal train` raises and lowers the group itself, and watches its nodes meanwhile.")
        return group


def _user_data(environment: dict[str, str], script: str) -> ec2.UserData:
    """Export what the boot script needs, fetch it, run it; below NODE_ROOT, which is empty on a machine of AWS."""
    user_data = ec2.UserData.for_linux()
    user_data.add_commands(
        "set -euo pipefail",
        *(f"export {name}='{value}'" for name, value in environment.items()),
        'mkdir -p "${NODE_ROOT:-}/tmp"',
        f"aws s3 cp '{script}' \"${{NODE_ROOT:-}}/tmp/boot.sh\"",
        'bash "${NODE_ROOT:-}/tmp/boot.sh"',
    )
    return user_data
