"""Creates the share: an encrypted EFS file system that all nodes mount."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct


class Share(Construct):
    """Encrypted EFS file system with a mount target in each zone. The file system is deleted with its stack.

    The file-system policy denies unencrypted connections and grants no access. So clients must mount the file system
    with `-o tls,iam` and a role that has access.
    """

    files: efs.FileSystem

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        vpc_subnets: ec2.SubnetSelection | None = None,
        encryption_key: kms.IKey | None = None,
    ) -> None:
        """Create the file system. No client has access to it yet.

        `vpc_subnets` has one subnet per zone. The default is the private subnets of `vpc`. Without `encryption_key`,
        AWS's key for EFS encrypts the files.
        """
        super().__init__(scope, construct_id)
        self._security_group = ec2.SecurityGroup(
            self, "Access", vpc=vpc, allow_all_outbound=False, description="The shared folder"
        )
        self.files = efs.FileSystem(
            self,
            "Files",
            vpc=vpc,
            vpc_subnets=vpc_subnets,
            security_group=self._security_group,
            encrypted=True,
            kms_key=encryption_key,
            throughput_mode=efs.ThroughputMode.ELASTIC,
            enable_automatic_backups=False,
            removal_policy=RemovalPolicy.DESTROY,
            file_system_policy=iam.PolicyDocument(
                statements=[
                    iam.PolicyStatement(
                        effect=iam.Effect.DENY,
                        principals=[iam.AnyPrincipal()],
                        actions=["*"],
                        conditions={"Bool": {"aws:SecureTransport": "false"}},
                    )
                ]
            ),
        )

    def allow_from(self, nodes: ec2.IConnectable, role: iam.IGrantable) -> None:
        """Allow these machines, with this role, to mount the file system and to write to it."""
        self._security_group.connections.allow_from(nodes, ec2.Port.NFS, "Nodes mount the shared folder")
        # Do not use CDK's grant method, because it would allow everyone to write through the file-system policy.
        iam.Grant.add_to_principal(
            grantee=role,
            actions=[f"elasticfilesystem:Client{action}" for action in ("Mount", "Write", "RootAccess")],
            resource_arns=[self.files.file_system_arn],
            conditions={"Bool": {"elasticfilesystem:AccessedViaMountTarget": "true"}},
        )
