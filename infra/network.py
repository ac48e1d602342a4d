"""The network: one private zone without a way out, and the endpoints that its nodes need.

Easy to get wrong: without NAT nothing outside AWS is reachable. S3 is, through its gateway, and with it the package
repositories of Amazon Linux; Ubuntu's and PyPI's are not.
"""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from infra import sizing


class Network(Construct):
    """A VPC with one private subnet, where every node runs; `paths` must be there before nodes, and outlive them."""

    vpc: ec2.Vpc
    subnet: ec2.ISubnet
    subnets: ec2.SubnetSelection
    paths: list[IConstruct]

    def __init__(self, scope: Construct, construct_id: str, *, zone: str | None) -> None:
        """Build it in this zone (such as us-east-1b), or in the region's first.

        In another zone a subnet is another one, and two cannot have the same addresses: the zone of a deployment stays.
        """
        super().__init__(scope, construct_id)
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr("10.0.0.0/16"),
            availability_zones=[zone] if zone else None,
            max_azs=None if zone else 1,
            nat_gateways=0,
            # CDK's way to close the default group is a Lambda of its own; nothing uses that group.
            restrict_default_security_group=False,
            subnet_configuration=[
                ec2.SubnetConfiguration(name="Nodes", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=20)
            ],
        )
        self.subnet = self.vpc.isolated_subnets[0]
        self.subnets = ec2.SubnetSelection(subnets=[self.subnet])
        storage = self.vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        self._record_flows()
        self._door = ec2.SecurityGroup(
            self, "EndpointAccess", vpc=self.vpc, allow_all_outbound=False, description="Interface endpoints"
        )
        endpoints = [
            ec2.InterfaceVpcEndpoint(
                self,
                f"Endpoint-{service}",
                vpc=self.vpc,
                service=ec2.InterfaceVpcEndpointAwsService(service),
                subnets=self.subnets,
                security_groups=[self._door],
                open=False,
            )
            for service in sizing.INTERFACE_ENDPOINTS
        ]
        self.paths = [self.subnet, storage, *endpoints]

    def admit(self, nodes: ec2.ISecurityGroup) -> None:
        """Let these nodes use the interface endpoints."""
        self._door.add_ingress_rule(nodes, ec2.Port.HTTPS, "Nodes call AWS services")

    def _record_flows(self) -> None:
        """Keep a week of flow logs.

        In CloudWatch and not in a bucket, and with a role that cannot create log groups: records are delivered late,
        and would fill the bucket, or bring the group back, after the stack has emptied and deleted it.
        """
        group = logs.LogGroup(
            self, "Flows", retention=logs.RetentionDays.ONE_WEEK, removal_policy=RemovalPolicy.DESTROY
        )
        role = iam.Role(self, "FlowsRole", assumed_by=iam.ServicePrincipal("vpc-flow-logs.amazonaws.com"))
        self.vpc.add_flow_log("FlowLog", destination=ec2.FlowLogDestination.to_cloud_watch_logs(group, role))
