"""Creates the one stack of a deployment: its parts, their permissions, and the order in which they are deleted.

Report a refusal as an annotation, not as an exception, because `cdk destroy` synthesises the stack, too.
"""

from collections.abc import Sequence
from pathlib import Path

from aws_cdk import Annotations, CfnOutput, Environment, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct
from shoal_guard.cleanup import Cleanup
from shoal_guard.grants import LIST, READ, allow, allow_objects, explain
from shoal_guard.handlers.cleanup import JOB_LOGS

from infra import gateway, libraries, parts, preflight, topology
from infra.guard import Guard
from infra.managed import Managed
from infra.managed_spec import ManagedSpec
from infra.network import Network
from infra.payload import Payload
from infra.preprocessing import Preprocessing
from infra.roles import REPLACE, WRITE, allow_inputs
from infra.share import Share
from infra.storage import Buckets
from infra.training import Training

_HADOOP_LISTS = (*LIST, "s3:GetBucketLocation", "s3:ListBucketMultipartUploads")
_HADOOP_WRITES = (*REPLACE, "s3:ListMultipartUploadParts")
_OF_EMR = (
    *("s3:GetBucketLocation", "s3:ListBucketMultipartUploads", "s3:ListMultipartUploadParts"),
    *("s3:AbortMultipartUpload", "s3:DeleteObject", "*:::*bucketslog*", "*:::*bucketsraw*"),
)
_AGENT = ("bootstrap/__init__.py", "bootstrap/agent")
_BALANCE = ("packages/balance/shoal_balance", "shoal_balance")
"""In a checkout; where Shoal is installed. A node's PYTHONPATH leads to both."""


class ShoalStack(Stack):
    """All resources of one deployment; a part that the topology omits is not created."""

    network: Network | None
    buckets: Buckets
    share: Share | None
    cleanup: Cleanup
    guard: Guard
    preprocessing: Preprocessing | None
    training: Training | None
    managed: Managed | None

    def __init__(
        self,
        scope: Construct,
        *,
        spec: topology.Topology,
        deployment: str,
        owner: str,
        generation: int,
        root: Path,
        emulated: bool,
    ) -> None:
        """Build the stack; `root` is the repository, `emulated` is whether the deployment goes to the emulator.

        Another `generation` (from 1) replaces the EMR cluster, even if nothing else has changed.
        """
        name = topology.stack_name(deployment)
        super().__init__(
            scope,
            name,
            stack_name=name,
            description=f"Shoal: {spec.description}",
            env=Environment(region=spec.region),
        )
        self._spec, self._deployment, self._generation, self._root = spec, deployment, generation, root
        self._claim = {"deployment": deployment, "owner": owner, "topology": spec.name}
        for tag, value in {
            **spec.tags,
            topology.TAG_DEPLOYMENT: deployment,
            topology.TAG_TOPOLOGY: spec.name,
            topology.TAG_OWNER: owner,
        }.items():
            Tags.of(self).add(tag, value)
        self._key = kms.Key.from_key_arn(self, "Key", spec.kms_key) if spec.kms_key else None
        if spec.permissions_boundary:
            limits = iam.ManagedPolicy.from_managed_policy_arn(self, "Boundary", spec.permissions_boundary)
            iam.PermissionsBoundary.of(self).apply(limits)
        self.network = self._network() if spec.has_nodes else None
        self.buckets = Buckets(self, "Buckets", spec=spec.data, key=self._key)
        self.share = self._share(self.network) if spec.share == "efs" and self.network else None
        self.cleanup = Cleanup.of(self)
        self.guard = Guard(self, "Guard", spec=spec, deployment=deployment, data=self.buckets.data)
        self.preprocessing = self.training = self.managed = None
        if self.network and spec.preprocessing:
            self.preprocessing = self._preprocessing(spec.preprocessing, self.network)
        if self.network and spec.training:
            self.training = self._training(spec.training, self.network)
        if spec.managed:
            self.managed = self._managed(spec.managed)
        self._jobs = self.cleanup.stop_jobs(deployment, topology.TAG_DEPLOYMENT, JOB_LOGS) if self.managed else None
        self._grant()
        self._clean()
        self._watch()
        self._output()
        if not emulated:
            for finding in preflight.offline(spec):  # `shoal plan` also reports warnings
                if finding.level == "error":
                    Annotations.of(self).add_error(finding.sentence)

    def _network(self) -> Network:
        through = gateway.statements(self, self._spec)
        return Network(self, "Network", spec=self._spec.network, zone=self._spec.zone, through=through)

    def _share(self, network: Network) -> Share:
        subnets = ec2.SubnetSelection(subnets=network.subnets)
        return Share(self, "Share", vpc=network.vpc, vpc_subnets=subnets, encryption_key=self._key)

    def _preprocessing(self, spec: parts.PreprocessingSpec, network: Network) -> Preprocessing:
        return Preprocessing(
            self,
            "Preprocessing",
            spec=spec,
            idle_minutes=self._spec.guard.idle_minutes,
            deployment=self._deployment,
            generation=self._generation,
            network=network,
            log=self.buckets.log,
            payload=self._payload(
                "emr",
                wheels=libraries.of_cluster(spec),
                packages=("common", "corpus", "jobs", *_AGENT),
                script="preprocessing/emr/install.sh",
            ),
        )

    def _training(self, node_groups: Sequence[parts.NodeGroup], network: Network) -> Training:
        return Training(
            self,
            "Training",
            node_groups=node_groups,
            environment={
                "DEPLOYMENT": self._deployment,
                "DATA_BUCKET": self.buckets.data.bucket_name,
                "SHARE_KIND": self._spec.share or "none",
                "SHARE_ID": self.share.files.file_system_id if self.share else "",
            },
            network=network,
            share=self.share,
            payload=self._payload(
                "gpu",
                wheels=libraries.of_gpu_nodes(self._spec),
                packages=(
                    "common",
                    "corpus",
                    *self._trainer,
                    *_AGENT,
                    *(["jobs"] if self._spec.preprocesses_on_node else []),
                ),
                script="nodes/gpu/boot.sh",
            ),
            key=self._key,
        )

    def _managed(self, spec: ManagedSpec) -> Managed:
        payload = self._payload(
            "managed",
            wheels=libraries.of_gpu_nodes(self._spec),
            packages=("common", "corpus", *self._trainer),
            script="nodes/managed/start.sh",
        )
        return Managed(self, "Managed", spec=spec, payload=payload, key=self._key)

    @property
    def _trainer(self) -> tuple[str, str]:
        return "trainer", next((each for each in _BALANCE if (self._root / each).exists()), _BALANCE[0])

    def _payload(self, kind: str, *, wheels: Path, packages: Sequence[str], script: str) -> Payload:
        return Payload(
            self,
            f"{kind.capitalize()}Payload",
            root=self._root,
            packages=packages,
            wheels=self._root / wheels,
            script=self._root / "bootstrap" / script,
        )

    def _grant(self) -> None:
        """Grant all permissions of the stack, except those that a construct needs for its own parts."""
        raw, data, log = self.buckets.raw, self.buckets.data, self.buckets.log
        runs = f"{topology.RUNS_PREFIX}{self._deployment}."  # a bucket may have those of other deployments, too
        if self.preprocessing and self.network:
            role = self.preprocessing.role
            self.preprocessing.payload.allow_download(role)
            allow_objects(role, raw, READ, listing=_HADOOP_LISTS)
            allow_objects(role, data, READ, under=(topology.REQUESTS_PREFIX,), listing=_HADOOP_LISTS)
            own = (topology.DATASETS_PREFIX, topology.WORK_PREFIX)
            allow_objects(role, data, _HADOOP_WRITES, under=own, listing=_HADOOP_LISTS)
            allow_objects(role, log, WRITE, under=(topology.EMR_LOGS_PREFIX,), listing=_HADOOP_LISTS)
            explain(role, _OF_EMR, "EMR's file system asks for it, and is not emulated.")
            allow_inputs(role, self._spec.inputs)
            self.network.allow_from(self.preprocessing.primary)
            self.network.allow_from(self.preprocessing.workers)
        if self.training and self.network:
            role = self.training.role
            self.training.payload.allow_download(role)
            read = (topology.DATASETS_PREFIX, topology.REQUESTS_PREFIX, topology.RUNS_PREFIX)
            allow_objects(role, data, READ, under=read)
            allow_objects(role, data, (*WRITE, "s3:DeleteObject"), under=(runs,))
            allow_objects(role, data, (*READ, *WRITE), under=(topology.NODES_PREFIX,))
            explain(role, ["s3:AbortMultipartUpload"], "An upload that fails leaves no parts that cost.")
            explain(role, ["s3:DeleteObject"], "Checkpoints replace each other, in runs that last long enough for two.")
            allow_inputs(role, self._spec.inputs)
            if self._spec.preprocesses_on_node:
                allow_objects(role, raw, READ)
            self.network.allow_from(self.training.nodes)
            if self.share:
                self.share.allow_from(self.training.nodes, role)
        if self.managed:
            role = self.managed.role
            allow_objects(role, data, READ, under=(topology.DATASETS_PREFIX, topology.RUNS_PREFIX))
            allow_objects(role, data, (*WRITE, "s3:DeleteObject"), under=(runs,))
            allow_objects(role, data, WRITE, under=(topology.MODELS_PREFIX,))
            explain(role, ["s3:AbortMultipartUpload", "s3:DeleteObject"], "SageMaker keeps checkpoints as they are.")
            allow_inputs(role, self._spec.inputs)
            self.managed.accept_findings()
        if self._key:
            nodes = [each.role for each in (self.preprocessing, self.training, self.managed) if each]
            for role in (*nodes, self.guard.role, self.cleanup.role):
                allow(role, ["kms:Decrypt", "kms:GenerateDataKey"], [self._key.key_arn])
            if self.managed:  # of its models, which it encrypts by the key that a job names
                allow(self.managed.role, ["kms:Encrypt"], [self._key.key_arn])
        self.cleanup.allow_revoke_group_rules(topology.TAG_DEPLOYMENT, self._deployment)

    def _clean(self) -> None:
        """Clean up on deletion, at the right time: CloudFormation deletes in reverse order of these dependencies."""
        for emptied in self.buckets.emptied:
            _before(emptied, self._machines())
        if self.managed and self._jobs:
            _before(self.managed, [self._jobs])
        written = (topology.extension_parameter(self._deployment), topology.guard_parameter(self._deployment))
        _before(self.cleanup.delete_parameters(written), [self.guard])

    def _watch(self) -> None:
        """Create the claim first, then the guard, then what costs by the hour, and the network, whose deletion can take
        a second try; delete in the opposite order."""
        _before(self.cleanup.claim(**self._claim), [self.guard, *self._machines()])
        shared = [each for each in (self.network, self.share) if each]
        _before(self.guard, [*self._machines(), *shared])

    def _machines(self) -> list[IConstruct]:
        """The node groups and the cluster, which write to buckets."""
        groups: list[IConstruct] = [*self.training.groups] if self.training else []
        jobs = [self.managed, self._jobs] if self.managed and self._jobs else []
        return [*groups, *([self.preprocessing.cluster] if self.preprocessing else []), *jobs]

    def _output(self) -> None:
        values = {
            topology.OUTPUT_RAW_BUCKET: self.buckets.raw.bucket_name,
            topology.OUTPUT_DATA_BUCKET: self.buckets.data.bucket_name,
            topology.OUTPUT_LOG_BUCKET: self.buckets.log.bucket_name,
            topology.OUTPUT_GUARD: self.guard.function.function_name,
        }
        if self.preprocessing:
            values[topology.OUTPUT_CLUSTER_ID] = self.preprocessing.cluster.ref
            values[topology.OUTPUT_GENERATION] = str(self._generation)
        if self._spec.preprocesses_on_node:
            values[topology.OUTPUT_ON_NODE] = self._spec.trainers[0].instance_type
        if self._spec.share:
            values[topology.OUTPUT_SHARE_ID] = self.share.files.file_system_id if self.share else self._spec.share
        if self._spec.inputs:
            values[topology.OUTPUT_INPUTS] = " ".join(self._spec.inputs)
        if self.managed:
            values[topology.OUTPUT_MANAGED] = self.managed.output(beside=bool(self._spec.training))
        if self._spec.max_dollars:
            values[topology.OUTPUT_MAX_DOLLARS] = str(self._spec.max_dollars)
        for name, value in values.items():
            CfnOutput(self, name, value=value)


def _before(first: IConstruct, others: Sequence[IConstruct]) -> None:
    """Create the others after the first, and delete them before it."""
    for other in others:
        other.node.add_dependency(first)
