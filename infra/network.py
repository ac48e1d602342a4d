"""Creates the network: private subnets, an endpoint of S3 and, on request, those of Systems Manager or a NAT gateway.

Without NAT nothing outside AWS is reachable. The S3 gateway endpoint gives access to S3 and to the package repositories
of Amazon Linux; those of Ubuntu and PyPI are not reachable. Nodes need nothing else: Systems Manager is for people who
want a shell on them.
"""

from collections.abc import Sequence

from aws_cdk import Annotations, Fn, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct
from shoal_guard.functions import log_group

from infra import parts, sizing, topology
from infra.roles import same_account_principal

_EXIT = "10.0.255.0/28"


class Network(Construct):
    """The subnets of all nodes: one in each zone of the deployment's own VPC, or one existing subnet.

    The cluster is in the first of `subnets`. The GPU nodes are there, too, unless only another subnet has capacity.
    Nodes must depend on `node_dependencies`; there are none in an existing network, which is not changed. `shell` is
    whether the user can open a shell on nodes.
    """

    shell: bool
    vpc: ec2.IVpc
    subnets: list[ec2.ISubnet]
    node_dependencies: list[IConstruct]

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        spec: parts.NetworkSpec,
        zone: str | None,
        through: Sequence[iam.PolicyStatement],
    ) -> None:
        """Build the network in this zone (such as us-east-1b), or in the first zones of the region.

        `through` is the policy of the S3 gateway endpoint; without statements it allows everything. The zone of a
        deployment cannot change, because the new subnet would have the same addresses as the old one.
        """
        super().__init__(scope, construct_id)
        self.shell = spec.shell
        self._security_group: ec2.SecurityGroup | None = None
        self.node_dependencies = []
        if spec.vpc:
            self.vpc, self.subnets = self._given(spec, zone)
        else:
            self.vpc, self.subnets = self._own(zone, through)
            self._record_flows(self.vpc)
            if spec.egress == "nat":
                self.node_dependencies.append(self._exit())
            elif spec.shell:
                self.node_dependencies += self._endpoints()
            self.node_dependencies += self.subnets

    @property
    def subnet(self) -> ec2.ISubnet:
        return self.subnets[0]

    def allow_from(self, nodes: ec2.ISecurityGroup) -> None:
        """Let these nodes use the interface endpoints, if there are any."""
        if self._security_group:
            self._security_group.add_ingress_rule(nodes, ec2.Port.HTTPS, "Nodes call AWS services")

    def _given(self, spec: parts.NetworkSpec, zone: str | None) -> tuple[ec2.IVpc, list[ec2.ISubnet]]:
        assert spec.vpc
        assert spec.subnet
        assert zone
        vpc = ec2.Vpc.from_vpc_attributes(
            self, "Vpc", vpc_id=spec.vpc, availability_zones=[zone], isolated_subnet_ids=[spec.subnet]
        )
        Annotations.of(vpc).acknowledge_warning(
            "@aws-cdk/aws-ec2:noSubnetRouteTableId", "Its routes are its owner's, and are not used here."
        )
        return vpc, vpc.isolated_subnets

    def _own(self, zone: str | None, through: Sequence[iam.PolicyStatement]) -> tuple[ec2.Vpc, list[ec2.ISubnet]]:
        vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr("10.0.0.0/16"),
            availability_zones=[zone] if zone else _zones(Stack.of(self).region),
            nat_gateways=0,
            # To restrict the default security group the CDK would add a function, but nothing uses that group.
            restrict_default_security_group=False,
            subnet_configuration=[
                ec2.SubnetConfiguration(name="Nodes", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=20)
            ],
        )
        for subnet in vpc.isolated_subnets:
            Tags.of(subnet).add(topology.TAG_NODES, "true", include_resource_types=["AWS::EC2::Subnet"])
        gateway = vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        for statement in through:
            gateway.add_to_policy(statement)
        self.node_dependencies.append(gateway)
        return vpc, vpc.isolated_subnets

    def _endpoints(self) -> list[IConstruct]:
        """Systems Manager's endpoints, only in the first zone, because each costs money by the hour and zone."""
        self._security_group = ec2.SecurityGroup(
            self, "EndpointAccess", vpc=self.vpc, allow_all_outbound=False, description="Interface endpoints"
        )
        return [
            ec2.InterfaceVpcEndpoint(
                self,
                f"Endpoint-{service}",
                vpc=self.vpc,
                service=ec2.InterfaceVpcEndpointAwsService(service),
                subnets=ec2.SubnetSelection(subnets=[self.subnet]),
                security_groups=[self._security_group],
                open=False,
            )
            for service in sizing.INTERFACE_ENDPOINTS
        ]

    def _exit(self) -> IConstruct:
        """One NAT gateway for all zones, in a public subnet of its own. It allows no connections from outside."""
        gateway = ec2.CfnInternetGateway(self, "Gateway")
        attachment = ec2.CfnVPCGatewayAttachment(
            self, "GatewayAttachment", vpc_id=self.vpc.vpc_id, internet_gateway_id=gateway.ref
        )
        public = ec2.PublicSubnet(
            self,
            "Exit",
            vpc_id=self.vpc.vpc_id,
            availability_zone=self.subnet.availability_zone,
            cidr_block=_EXIT,
            map_public_ip_on_launch=False,
        )
        public.add_default_internet_route(gateway.ref, attachment)
        nat = public.add_nat_gateway()
        for subnet in self.subnets:
            assert isinstance(subnet, ec2.Subnet)
            subnet.add_default_nat_route(nat.ref)
        return public

    def _record_flows(self, vpc: ec2.IVpc) -> None:
        """Keep flow logs.

        Do not keep them in a bucket, and do not let the role create log groups: records arrive late, and would fill
        the emptied bucket or create the deleted log group again.
        """
        group = log_group(self, "Flows")
        taken_by = same_account_principal(
            Stack.of(self), "vpc-flow-logs.amazonaws.com", service="ec2", name="vpc-flow-log/*"
        )
        role = iam.Role(self, "FlowsRole", assumed_by=taken_by)
        vpc.add_flow_log("FlowLog", destination=ec2.FlowLogDestination.to_cloud_watch_logs(group, role))


def _zones(region: str) -> Sequence[str]:
    """The region's first zones in CloudFormation's order; `bootstrap/lifecycle/rules` predicts them."""
    return [Fn.select(number, Fn.get_azs()) for number in range(sizing.zones(region))]
