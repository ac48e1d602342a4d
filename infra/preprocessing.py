"""Creates the EMR cluster that turns raw reviews into a dataset, in a private subnet.

EMR adds rules to the nodes' security groups that CloudFormation does not know, and restores the rules while the cluster
exists. So the cluster depends on the `Cleanup` that removes these rules. EMR's service policy allows access only to
resources with the tag _MANAGED_TAG.
"""

from aws_cdk import Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_emr as emr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct
from shoal_guard.cleanup import Cleanup
from shoal_guard.grants import LIST, READ, accept, allow, allow_objects, explain

from common import names
from infra import libraries, parts, sizing, topology
from infra.network import Network
from infra.stage import (
    AGENT,
    REPLACE,
    WRITE,
    SharedSettings,
    Stage,
    accept_policy,
    allow_inputs,
    node_role,
    same_account_principal,
)

_MANAGED_TAG = "for-use-with-amazon-emr-managed-policies"
# Do not tag the VPC, because EMR could then create security groups in it that CloudFormation does not know. They would
# make the deletion of the VPC fail.
_MANAGED_TYPES = ("AWS::EMR::Cluster", "AWS::EC2::SecurityGroup", "AWS::EC2::Subnet")

_TO_ENCRYPT_DISKS = (
    *("Decrypt", "DescribeKey", "Encrypt"),
    *("GenerateDataKey", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom", "ReEncryptTo"),
)
"""Actions that EMR needs on the KMS key to start instances with encrypted volumes, in addition to a grant for EC2."""
_LISTS = (*LIST, "s3:GetBucketLocation", "s3:ListBucketMultipartUploads")
_WRITES = (*REPLACE, "s3:ListMultipartUploadParts")
_OF_FILE_SYSTEM = (
    *("s3:GetBucketLocation", "s3:ListBucketMultipartUploads", "s3:ListMultipartUploadParts"),
    *("s3:AbortMultipartUpload", "s3:DeleteObject", "*:::*bucketslog*", "*:::*bucketsraw*"),
)


class Preprocessing(Stage):
    """EMR cluster of a deployment. The cluster waits for steps, and terminates itself after `idle_minutes` without
    steps.

    Without core nodes, the primary node does all the work. The shuffle is not encrypted. Local disks are encrypted only
    if the topology has a KMS key. `_accept_findings` gives the reasons.
    """

    cluster: emr.CfnCluster
    groups: list[ec2.SecurityGroup]

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        deployment: SharedSettings,
        *,
        spec: parts.PreprocessingSpec,
        network: Network,
        generation: int,
    ) -> None:
        """Create the cluster.

        A generation of 2 or more is part of the cluster's logical ID. CloudFormation does not notice that a cluster
        terminated itself, and creates a new cluster only under a new ID.
        """
        super().__init__(
            scope,
            construct_id,
            deployment,
            wheels=libraries.of_cluster(spec),
            packages=("common", "corpus", "jobs", "bootstrap/emr/preprocess.sh", *AGENT),
            script="emr/install.sh",
        )
        self.role = node_role(self, shell=network.shell)
        profile = iam.InstanceProfile(self, "NodeProfile", role=self.role)
        service = _service_role(self, self.role, deployment.key, spot="spot" in {market for *_, market in spec.groups})
        security = _security_configuration(self, deployment.key)
        self.groups = _security_groups(self, network.vpc)
        self.cluster = emr.CfnCluster(
            self,
            "Cluster" if generation == 1 else f"Cluster{generation}",
            name=topology.stack_name(deployment.name),
            release_label=spec.release,
            custom_ami_id=spec.image,
            applications=[emr.CfnCluster.ApplicationProperty(name=name) for name in ("Hadoop", "Spark")],
            job_flow_role=profile.instance_profile_name,
            service_role=service.role_arn,
            security_configuration=security.ref,
            log_uri=deployment.buckets.log.s3_url_for_object(names.EMR_LOGS),
            visible_to_all_users=True,
            step_concurrency_level=1,
            ebs_root_volume_size=sizing.EMR_ROOT_GIB,
            # Auto-termination needs a public endpoint. AWS does not say whether port 9443 is enough ("Using an
            # auto-termination policy", read on 2026-11-29).
            auto_termination_policy=emr.CfnCluster.AutoTerminationPolicyProperty(
                idle_timeout=deployment.spec.guard.idle_minutes * 60
            ),
            instances=self._instances(spec, network.subnet),
            bootstrap_actions=[self._install()],
        )
        # The roles with their policies, the rules of the security group for EMR's service, and the endpoints of the
        # network must outlive the nodes. The rules that EMR adds are removed after the nodes.
        rules = Cleanup.of(self).revoke_group_rules(self.groups, "Groups")
        self.cluster.node.add_dependency(
            self.role, profile, service, self.groups[-1], rules, *network.node_dependencies
        )
        for part in (self, network.subnet):
            Tags.of(part).add(_MANAGED_TAG, "true", include_resource_types=list(_MANAGED_TYPES))
        self.machines = [self.cluster]
        self.outputs = {
            names.OUTPUT_CLUSTER_ID: self.cluster.ref,
            names.OUTPUT_GENERATION: str(generation),
        }
        _accept_findings(self.cluster, deployment.key)
        self._grant(deployment, network)

    def _grant(self, deployment: SharedSettings, network: Network) -> None:
        buckets, role = deployment.buckets, self.role
        self.payload.allow_download(role)
        allow_objects(role, buckets.raw, READ, listing=_LISTS)
        allow_objects(role, buckets.data, READ, under=(names.REQUESTS,), listing=_LISTS)
        own = (names.DATASETS, names.WORK)
        allow_objects(role, buckets.data, _WRITES, under=own, listing=_LISTS)
        allow_objects(role, buckets.log, WRITE, under=(names.EMR_LOGS,), listing=_LISTS)
        explain(role, _OF_FILE_SYSTEM, "EMR's file system calls these operations, and is not emulated.")
        allow_inputs(role, deployment.spec.inputs)
        for nodes in self.groups[:2]:
            network.allow_from(nodes)

    def _install(self) -> emr.CfnCluster.BootstrapActionConfigProperty:
        """Return the bootstrap action, with which each node installs Shoal before EMR installs Hadoop."""
        return emr.CfnCluster.BootstrapActionConfigProperty(
            name="Install Shoal",
            script_bootstrap_action=emr.CfnCluster.ScriptBootstrapActionConfigProperty(
                path=self.payload.script, args=[self.payload.code, self.payload.wheels, Stack.of(self).region]
            ),
        )

    def _instances(
        self, spec: parts.PreprocessingSpec, subnet: ec2.ISubnet
    ) -> emr.CfnCluster.JobFlowInstancesConfigProperty:
        primary, workers, access = self.groups
        return emr.CfnCluster.JobFlowInstancesConfigProperty(
            ec2_subnet_id=subnet.subnet_id,
            emr_managed_master_security_group=primary.security_group_id,
            emr_managed_slave_security_group=workers.security_group_id,
            service_access_security_group=access.security_group_id,
            keep_job_flow_alive_when_no_steps=True,
            termination_protected=False,
            master_instance_group=_nodes(spec.primary, 1),
            core_instance_group=_nodes(spec.core, spec.core.count) if spec.core else None,
            task_instance_groups=[_nodes(spec.task, spec.task.count)] if spec.task else None,
        )


def _service_role(scope: Construct, nodes: iam.Role, key: kms.IKey | None, *, spot: bool) -> iam.Role:
    """Create EMR's service role, with AWS's managed policy for tagged resources. The role can pass the nodes' role
    to EC2.

    `key`: the topology's KMS key. `spot`: whether the cluster has spot nodes.
    """
    policy = "service-role/AmazonEMRServicePolicy_v2"
    role = iam.Role(
        scope,
        "ServiceRole",
        assumed_by=same_account_principal(
            Stack.of(scope), "elasticmapreduce.amazonaws.com", service="elasticmapreduce", name="*"
        ),
        managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(policy)],
    )
    accept_policy(
        role,
        policy,
        "AWS decides what EMR needs. This version of the policy allows changes only to tagged resources.",
    )
    to_nodes = {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
    allow(role, ["iam:PassRole"], [nodes.role_arn], to_nodes)
    if key:
        allow(role, [f"kms:{action}" for action in _TO_ENCRYPT_DISKS], [key.key_arn])
        allow(role, ["kms:CreateGrant"], [key.key_arn], {"Bool": {"kms:GrantIsForAWSResource": "true"}})
    if spot:
        # The first spot request in an account creates this service-linked role, which the managed policy does not
        # allow.
        name = "aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
        allow(
            role,
            ["iam:CreateServiceLinkedRole"],
            [Stack.of(scope).format_arn(service="iam", region="", resource="role", resource_name=name)],
            {"StringEquals": {"iam:AWSServiceName": "spot.amazonaws.com"}},
        )
    return role


def _security_configuration(scope: Construct, key: kms.IKey | None) -> emr.CfnSecurityConfiguration:
    """Create the security configuration, which encrypts local disks if there is a KMS key."""
    at_rest: dict[str, object] = {"S3EncryptionConfiguration": {"EncryptionMode": "SSE-S3"}}
    if key:
        aws_key = {"AwsKmsKey": key.key_arn}
        at_rest = {
            "S3EncryptionConfiguration": {"EncryptionMode": "SSE-KMS", **aws_key},
            "LocalDiskEncryptionConfiguration": {
                "EncryptionKeyProviderType": "AwsKms",
                "EnableEbsEncryption": True,
                **aws_key,
            },
        }
    return emr.CfnSecurityConfiguration(
        scope,
        "Security",
        security_configuration={
            "EncryptionConfiguration": {
                "EnableAtRestEncryption": True,
                "EnableInTransitEncryption": False,
                "AtRestEncryptionConfiguration": at_rest,
            },
            "InstanceMetadataServiceConfiguration": {
                "MinimumInstanceMetadataServiceVersion": 2,
                "HttpPutResponseHopLimit": 1,
            },
        },
    )


def _security_groups(scope: Construct, vpc: ec2.IVpc) -> list[ec2.SecurityGroup]:
    """Create the security groups for the primary node, for the other nodes, and for EMR's service."""
    primary, workers = (
        ec2.SecurityGroup(scope, name, vpc=vpc, description=f"EMR {name.lower()} nodes") for name in ("Primary", "Core")
    )
    access = ec2.SecurityGroup(
        scope, "ServiceAccess", vpc=vpc, allow_all_outbound=False, description="EMR service access"
    )
    # In a private subnet, EMR does not add these rules to the service's group, but refuses a cluster without them.
    access.add_ingress_rule(primary, ec2.Port.tcp(9443), "The primary node reports to EMR")
    for nodes in (primary, workers):
        access.add_egress_rule(nodes, ec2.Port.tcp(8443), "EMR manages the nodes")
    # Rules that refer to a group are separate resources. A group without inline rules can send all traffic (AWS
    # CloudFormation Template Reference, "AWS::EC2::SecurityGroup", read 2026-11-29).
    access.add_egress_rule(ec2.Peer.ipv4("255.255.255.255/32"), ec2.Port.icmp_type_and_code(252, 86), "Nothing else")
    return [primary, workers, access]


def _accept_findings(cluster: emr.CfnCluster, key: kms.IKey | None) -> None:
    """Accept the findings of cdk-nag on the cluster, with the reasons."""
    accept(
        cluster,
        "EMR4",
        "The user's key encrypts local disks. The rule does not find this setting below `EncryptionConfiguration`."
        if key
        else "To encrypt local disks, EMR requires a KMS key of the account, and a new key would outlive the "
        "stack by a week. Accounts that encrypt EBS by default encrypt these disks anyway.",
    )
    accept(
        cluster,
        "EMR5",
        "To encrypt the shuffle, EMR requires certificates, and their private key would be in a bucket. The "
        "shuffle does not leave one private subnet, and connections to S3 use TLS.",
    )
    accept(
        cluster,
        "EMR6",
        "Nobody logs in over SSH. If the topology allows shells, Systems Manager gives access with the user's "
        "identity.",
    )


def _nodes(spec: parts.Primary | parts.WorkersSpec, count: int) -> emr.CfnCluster.InstanceGroupConfigProperty:
    """Return an EMR instance group of `count` nodes. It has no bid price, so that EMR pays at most the on-demand price
    for spot nodes."""
    return emr.CfnCluster.InstanceGroupConfigProperty(
        instance_type=spec.instance_type,
        instance_count=count,
        market="SPOT" if spec.market == "spot" else "ON_DEMAND",
        ebs_configuration=emr.CfnCluster.EbsConfigurationProperty(
            ebs_block_device_configs=[
                emr.CfnCluster.EbsBlockDeviceConfigProperty(
                    volume_specification=emr.CfnCluster.VolumeSpecificationProperty(
                        size_in_gb=sizing.EMR_DATA_GIB, volume_type="gp3"
                    )
                )
            ]
        ),
    )
