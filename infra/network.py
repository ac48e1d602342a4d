"""Creates the network: private subnets, an S3 endpoint and, if the topology asks for them, Systems Manager endpoints or
a NAT gateway.

Without a NAT gateway, nodes cannot connect to anything outside AWS. Through the S3 gateway endpoint they can access S3
and the package repositories of Amazon Linux, but not the repositories of Ubuntu and PyPI. Nodes need nothing else.
Systems Manager is only for shells.
"""

from collections.abc import Sequence

from aws_cdk import Annotations, Fn, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct
from shoal_guard.cleanup import Cleanup
from shoal_guard.functions import log_group

from common import names
from infra import catalog, parts, sizing, topology
from infra.stage import same_account_principal

_EXIT = "10.0.255.0/28"

# https://docs.aws.amazon.com/systems-manager/latest/userguide/ssm-agent-technical-details.html, for Linux.
_OF_SYSTEMS_MANAGER = (
    "aws-ssm-{region}",
    "amazon-ssm-{region}",
    "amazon-ssm-packages-{region}",
    "aws-ssm-document-attachments-{region}",
    "aws-ssm-distributor-file-{region}",
    "patch-baseline-snapshot-{region}",
    "{region}-birdwatcher-prod",
)
_OF_AMAZON_LINUX = ("al2023-repos-{region}-de612dc2",)
# https://docs.aws.amazon.com/emr/latest/ManagementGuide/private-subnet-iampolicy.html; the last two buckets hold
# EMR's own steps and scripts.
_OF_EMR = ("repo.{region}.emr.amazonaws.com", "{region}.elasticmapreduce", "elasticmapreduce")
_OF_EMRS_HISTORY = "prod.{region}.appinfo.src"


class Network(Construct):
    """Subnets for all nodes: one in each zone of a new VPC, or one existing subnet.

    The EMR cluster is in the first of `subnets`. The GPU nodes are in the same subnet, or in another subnet if the
    first has no capacity. Nodes must depend on `node_dependencies`. This list is empty for an existing network, which
    Shoal does not change. `shell` is true if the user can open a shell on nodes.
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
        spec: topology.Topology,
        zones: Sequence[str] = (),
    ) -> None:
        """Create the network in the topology's zone (such as us-east-1b), or in the zones with the ids `zones` (such as
        use1-az1). By default, these are the first zones that offer all instance types by the price list.

        A deployment must keep its zones, because a subnet in a different zone would have the same IP addresses as the
        existing subnet.
        """
        super().__init__(scope, construct_id)
        network = spec.network
        self.shell = network.shell
        self._security_group: ec2.SecurityGroup | None = None
        self.node_dependencies = []
        if network.vpc:
            self.vpc, self.subnets = self._given(network, spec.zone)
        else:
            self.vpc, self.subnets = self._own(spec, [] if spec.zone else zones or _offering_zones(spec))
            self._record_flows(self.vpc)
            if network.egress == "nat":
                self.node_dependencies.append(self._exit())
            elif network.shell:
                self.node_dependencies += self._endpoints()
            self.node_dependencies += [*self.subnets, Cleanup.of(self).delete_guardduty(self.vpc)]

    @property
    def subnet(self) -> ec2.ISubnet:
        return self.subnets[0]

    def allow_from(self, nodes: ec2.ISecurityGroup) -> None:
        """Allow these nodes to connect to the interface endpoints, if the network has any."""
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
            "@aws-cdk/aws-ec2:noSubnetRouteTableId",
            "The routes belong to the owner of the subnet, and Shoal does not use them.",
        )
        return vpc, vpc.isolated_subnets

    def _own(self, spec: topology.Topology, zones: Sequence[str]) -> tuple[ec2.Vpc, list[ec2.ISubnet]]:
        """Create the network. Without `zones` it is in the topology's zone, or in the first zones of the region."""
        vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr("10.0.0.0/16"),
            availability_zones=zones or ([spec.zone] if spec.zone else _first_zones(Stack.of(self).region)),
            nat_gateways=0,
            # Do not restrict the default security group, because nothing uses it and CDK would add a function to the
            # stack for this.
            restrict_default_security_group=False,
            subnet_configuration=[
                ec2.SubnetConfiguration(name="Nodes", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=20)
            ],
        )
        for number, subnet in enumerate(vpc.isolated_subnets):
            resource = subnet.node.default_child
            assert isinstance(resource, ec2.CfnSubnet)
            if zones:
                resource.availability_zone, resource.availability_zone_id = None, zones[number]
            Tags.of(subnet).add(names.TAG_NODES, "true", include_resource_types=["AWS::EC2::Subnet"])
        gateway = vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        for statement in _gateway_statements(Stack.of(self), spec):
            gateway.add_to_policy(statement)
        self.node_dependencies.append(gateway)
        return vpc, vpc.isolated_subnets

    def _endpoints(self) -> list[IConstruct]:
        """Create the Systems Manager endpoints, only in the first zone, because each endpoint is charged per hour and
        zone."""
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
        """Create one NAT gateway for all zones, in a public subnet. A NAT gateway allows no connections from
        outside."""
        gateway = ec2.CfnInternetGateway(self, "Gateway")
        attachment = ec2.CfnVPCGatewayAttachment(
            self, "GatewayAttachment", vpc_id=self.vpc.vpc_id, internet_gateway_id=gateway.ref
        )
        assert isinstance(self.subnet, ec2.Subnet)
        public = ec2.PublicSubnet(
            self,
            "Exit",
            vpc_id=self.vpc.vpc_id,
            availability_zone=self.subnet.subnet_availability_zone,
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
        """Record the flow logs of the VPC in a log group.

        Do not use a bucket, and do not allow the role to create log groups. Records arrive late, so they would fill a
        bucket that was emptied, or recreate a log group that was deleted.
        """
        group = log_group(self, "Flows")
        taken_by = same_account_principal(
            Stack.of(self), "vpc-flow-logs.amazonaws.com", service="ec2", name="vpc-flow-log/*"
        )
        role = iam.Role(self, "FlowsRole", assumed_by=taken_by)
        vpc.add_flow_log("FlowLog", destination=ec2.FlowLogDestination.to_cloud_watch_logs(group, role))


def _offering_zones(spec: topology.Topology) -> list[str]:
    """Return the ids of the first zones that offer all instance types of a topology, by the price list. The list is
    empty if the price list has no such zones.

    The name of a zone means different zones in different accounts ("AZ IDs", AWS Regions and Availability Zones).
    """
    offered = catalog.prices(spec.region).zones
    zones = {zone for each in offered.values() for zone in each}
    for name in topology.instance_types(spec):
        zones &= {*offered.get(name, zones)}
    return sorted(zones)[: sizing.zones(spec.region)]


def _first_zones(region: str) -> Sequence[str]:
    """Return the first zones of the region, in CloudFormation's order."""
    return [Fn.select(number, Fn.get_azs()) for number in range(sizing.zones(region))]


def _gateway_statements(stack: Stack, spec: topology.Topology) -> list[iam.PolicyStatement]:
    """Return the policy statements for the S3 gateway endpoint. With a NAT gateway the list is empty, which allows all
    access.

    Without a policy, the endpoint gives access to the buckets of all AWS accounts. With these statements, nodes can
    write only to buckets of their account, and can read what their role allows. The buckets of AWS that a node needs
    are allowed by name. Do not limit the statements to a principal, because nodes download packages and agents without
    credentials.
    """
    if spec.network.egress == "nat":
        return []
    account = stack.account
    statements = [
        _allow_everyone(["s3:*"], ["*"], {"aws:ResourceAccount": account}),
        # The nodes' role limits which objects they can read.
        _allow_everyone(["s3:Get*", "s3:List*"], ["*"], {"aws:PrincipalAccount": account}),
        _allow_everyone(
            ["s3:GetObject"],
            _objects_of(stack, *_OF_AMAZON_LINUX, *(_OF_SYSTEMS_MANAGER if spec.network.shell else ())),
        ),
    ]
    if spec.preprocessing:
        log = "aws157-logs-prod" if stack.region == "us-east-1" else "aws157-logs-prod-{region}"
        statements += [
            _allow_everyone(["s3:GetObject"], _objects_of(stack, *_OF_EMR)),
            _allow_everyone(["s3:Put*"], _objects_of(stack, log)),
            _allow_everyone(
                ["s3:Put*", "s3:Get*", "s3:Create*", "s3:Abort*", "s3:List*"], _objects_of(stack, _OF_EMRS_HISTORY)
            ),
        ]
    return statements


def _objects_of(stack: Stack, *buckets: str) -> list[str]:
    names = (name.format(region=stack.region) for name in buckets)
    return [stack.format_arn(service="s3", region="", account="", resource=name, resource_name="*") for name in names]


def _allow_everyone(
    actions: list[str], resources: list[str], where: dict[str, str] | None = None
) -> iam.PolicyStatement:
    """Return a statement that allows all principals. The policy of an endpoint only limits requests; roles grant the
    permissions."""
    return iam.PolicyStatement(
        principals=[iam.AnyPrincipal()],
        actions=actions,
        resources=resources,
        conditions={"StringEquals": where} if where else None,
    )
