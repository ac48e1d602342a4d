"""Creates a group of nodes of one kind, for any stack; `infra/training.py` has those of a deployment.

Do not give a group a desired capacity that starts later, because a later deployment would set it again and end a
running training. It starts at its minimum, zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jsii
from aws_cdk import Annotations, CfnDynamicReference, CfnDynamicReferenceService
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra import catalog, parts, sizing
from infra.roles import accept


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What groups may have in common. `key` encrypts the volumes; without it AWS's does."""

    vpc: ec2.IVpc
    subnets: ec2.SubnetSelection | None
    profile: iam.InstanceProfile
    security_group: ec2.ISecurityGroup
    placement_group: ec2.PlacementGroup | None
    key: kms.IKey | None


class NodeGroup(Construct):
    """An auto scaling group from zero to the group's count, of nodes with AWS's image for deep learning."""

    group: autoscaling.AutoScalingGroup
    template: ec2.LaunchTemplate

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        spec: parts.NodeGroup,
        machine: Machine,
        user_data: ec2.UserData | None,
    ) -> None:
        """Build the group; `user_data` is what its nodes run when they boot."""
        super().__init__(scope, construct_id)
        self._machine = machine
        self.template = template = self._template(spec, user_data)
        spot = spec.market == "spot"
        self.group = autoscaling.AutoScalingGroup(
            self,
            "Default",
            vpc=machine.vpc,
            vpc_subnets=machine.subnets,
            launch_template=None if spot else template,
            mixed_instances_policy=_spot(template, spec.instance_types) if spot else None,
            min_capacity=0,
            desired_capacity=spec.count if spec.start == "deploy" else None,
            max_capacity=spec.count,
            # No Capacity Rebalancing: Auto Scaling would end a node that trains before its replacement has booted.
        )
        Annotations.of(self.group).acknowledge_warning(
            "@aws-cdk/aws-autoscaling:desiredCapacitySet", "CloudFormation resets it only when the group changes."
        )
        if spot:
            reason = "The rule cannot read a template in a mixed-instances policy; the disk is encrypted."
            accept(self.group, "EC26", reason)
        accept(self.group, "AS3", "What trains scales the group itself, and watches its nodes.")

    def _template(self, spec: parts.NodeGroup, user_data: ec2.UserData | None) -> ec2.LaunchTemplate:
        machine = self._machine
        template = ec2.LaunchTemplate(
            self,
            "Template",
            instance_type=ec2.InstanceType(spec.instance_type),
            machine_image=_Image(spec),
            instance_profile=machine.profile,
            security_group=machine.security_group,
            placement_group=machine.placement_group,
            require_imdsv2=True,
            http_put_response_hop_limit=1,
            user_data=user_data,
            block_devices=[
                ec2.BlockDevice(
                    device_name="/dev/xvda",
                    volume=ec2.BlockDeviceVolume.ebs(
                        sizing.GPU_ROOT_GIB,
                        encrypted=True,
                        kms_key=machine.key,
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
            # EC2 takes a security group either for the instance or for its interfaces.
            resource.add_property_deletion_override("LaunchTemplateData.SecurityGroupIds")
            interfaces = [_interface(card, machine.security_group.security_group_id) for card in range(efa.cards)]
            resource.add_property_override("LaunchTemplateData.NetworkInterfaces", interfaces)
        return template


def _interface(card: int, security_group: str) -> dict[str, object]:
    """The EFA interface of a network card; only the first card's has an IP address, by which the node is reached.

    As in AWS's "Maximize network bandwidth on Amazon EC2 instances with multiple network cards".
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
    """The group's own image, or that which AWS's parameter names when the stack is deployed.

    Do not resolve it when a node starts: a group of spot instances refuses such a template, and every update of a group
    would need the permission to read the parameter.
    """

    def __init__(self, spec: parts.NodeGroup) -> None:
        self._spec = spec

    def get_image(self, _scope: Construct) -> ec2.MachineImageConfig:
        parameter = catalog.image_of(self._spec.instance_type).parameter
        reference = CfnDynamicReference(CfnDynamicReferenceService.SSM, parameter).to_string()
        return ec2.MachineImageConfig(
            image_id=self._spec.image or reference,
            os_type=ec2.OperatingSystemType.LINUX,
            user_data=ec2.UserData.for_linux(),
        )


def _spot(template: ec2.LaunchTemplate, several: Sequence[str]) -> autoscaling.MixedInstancesPolicy:
    """Spot nodes only, of the template's type or of `several`.

    `bootstrap/nodes/scale_up.py` changes it when there is no spot capacity; on demand AWS takes the first type of the
    list that it has.
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
