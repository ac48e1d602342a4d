"""Creates the storage: three buckets, and the folder that all GPU nodes share.

A bucket that is not empty cannot be deleted, so everything that writes into one must be deleted before `Cleanup`
empties it.
"""

from aws_cdk import Duration, RemovalPolicy, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra import parts, topology
from infra.network import Network
from infra.roles import accept, allow

_ABANDONED = Duration.days(2)
"""After this time S3 deletes what an interrupted command has left unfinished."""


class Buckets(Construct):
    """The buckets `raw` (raw reviews), `data` (datasets, runs, nodes' states) and `log` (EMR's logs).

    `own` are those that the stack creates, each with whether it outlives the stack: None means that it does if it holds
    runs that were not fetched. An existing data bucket is not among them: it is never emptied or deleted, and its
    policy and its lifecycle do not change.
    """

    raw: s3.Bucket
    data: s3.IBucket
    log: s3.Bucket
    own: dict[s3.Bucket, bool | None]

    def __init__(self, scope: Construct, construct_id: str, *, spec: parts.DataSpec, key: kms.IKey | None) -> None:
        """Build all buckets that do not exist yet; `key` encrypts their objects, in place of S3's own."""
        super().__init__(scope, construct_id)
        self._key = key
        self.raw = self._bucket("Raw")
        self.log = self._bucket("Log", s3.LifecycleRule(expiration=Duration.days(30)))
        self.own = {self.raw: False, self.log: False}
        if spec.bucket:
            self.data = s3.Bucket.from_bucket_name(self, "Data", spec.bucket)
        else:
            expiring = s3.LifecycleRule(prefix=topology.WORK_PREFIX, expiration=_ABANDONED)
            self.data = own = self._bucket("Data", expiring, keep=spec.keep)
            self.own[own] = spec.keep

    def _bucket(self, name: str, *expiring: s3.LifecycleRule, keep: bool | None = False) -> s3.Bucket:
        """`keep` as in `own`. CloudFormation deletes no bucket for which that is not False; the cleanup may."""
        policy = RemovalPolicy.DESTROY if keep is False else RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
        bucket = s3.Bucket(
            self,
            name,
            encryption=s3.BucketEncryption.KMS if self._key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=self._key,
            bucket_key_enabled=True if self._key else None,
            enforce_ssl=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            removal_policy=policy,
            lifecycle_rules=[s3.LifecycleRule(abort_incomplete_multipart_upload_after=_ABANDONED), *expiring],
        )
        if keep is not False:
            Tags.of(bucket).add(topology.TAG_KEEP, "true" if keep else topology.KEEP_UNFETCHED)
            assert bucket.policy
            bucket.policy.apply_removal_policy(policy)
        for rule in ("S1", "CKV_AWS_18"):
            accept(
                bucket, rule, "Access logs arrive hours late, and their bucket must be empty for the stack's deletion."
            )
        accept(
            bucket,
            "CKV_AWS_21",
            "Objects are written once and never changed, so versions would only add costs.",
        )
        return bucket


class Share(Construct):
    """An encrypted EFS file system with a mount target in every zone where nodes may be.

    Its policy refuses unencrypted connections and allows no access itself. So a client must mount it with `-o tls,iam`
    and a role that has access.
    """

    files: efs.FileSystem

    def __init__(self, scope: Construct, construct_id: str, *, network: Network, key: kms.IKey | None) -> None:
        """Build the file system, which `key` or else AWS's encrypts; no client has access yet."""
        super().__init__(scope, construct_id)
        self._security_group = ec2.SecurityGroup(
            self, "Access", vpc=network.vpc, allow_all_outbound=False, description="The shared folder"
        )
        self.files = efs.FileSystem(
            self,
            "Files",
            vpc=network.vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=network.subnets),
            security_group=self._security_group,
            encrypted=True,
            kms_key=key,
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

    def allow_from(self, nodes: ec2.ISecurityGroup, role: iam.Role) -> None:
        """Let these nodes mount the folder with this role, and write to it."""
        self._security_group.add_ingress_rule(nodes, ec2.Port.NFS, "Nodes mount the shared folder")
        nodes.add_egress_rule(self._security_group, ec2.Port.NFS, "Nodes mount the shared folder")
        # The CDK's own grant would also allow everyone to write, in the file system's policy.
        allow(
            role,
            [f"elasticfilesystem:Client{action}" for action in ("Mount", "Write", "RootAccess")],
            [self.files.file_system_arn],
            {"Bool": {"elasticfilesystem:AccessedViaMountTarget": "true"}},
        )
