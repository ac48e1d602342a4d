"""Creates the stack of a deployment: its parts, their permissions, and the order of their deletion.

Report an error as a CDK annotation, not as an exception, because `cdk destroy` also synthesises the stack.
"""

from collections.abc import Sequence
from pathlib import Path

from aws_cdk import Annotations, CfnOutput, Environment, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct
from shoal_guard.cleanup import Cleanup
from shoal_guard.grants import allow

from common import names
from infra import preflight, topology
from infra.guard import Guard
from infra.managed import Managed
from infra.network import Network
from infra.preprocessing import Preprocessing
from infra.share import Share
from infra.stage import SharedSettings, Stage
from infra.storage import Buckets
from infra.training import Training


class ShoalStack(Stack):
    """Stack of one deployment, with the parts that its topology has."""

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
        zones: Sequence[str] = (),
        retired: bool = False,
    ) -> None:
        """Create the stack. `root` is the repository, and `emulated` is true if the stack is for the emulator. `zones`
        are the ids of the network's zones (see `Network`). `retired` accepts instance types that AWS no longer starts,
        to show the template.

        `generation` starts at 1. A different generation replaces the EMR cluster, even if nothing else changed.
        """
        name = topology.stack_name(deployment)
        super().__init__(
            scope,
            name,
            stack_name=name,
            description=f"Shoal: {spec.description}",
            env=Environment(region=spec.region),
        )
        for tag, value in {
            **spec.tags,
            names.TAG_DEPLOYMENT: deployment,
            names.TAG_TOPOLOGY: spec.name,
            names.TAG_OWNER: owner,
        }.items():
            Tags.of(self).add(tag, value)
        key = kms.Key.from_key_arn(self, "Key", spec.kms_key) if spec.kms_key else None
        if spec.permissions_boundary:
            limits = iam.ManagedPolicy.from_managed_policy_arn(self, "Boundary", spec.permissions_boundary)
            iam.PermissionsBoundary.of(self).apply(limits)
        network = Network(self, "Network", spec=spec, zones=zones) if spec.has_nodes else None
        self._buckets = Buckets(self, "Buckets", spec=spec.data, key=key)
        self._share = self._file_system(network, key) if spec.share == "efs" and network else None
        self._cleanup = Cleanup.of(self)
        self._guard = Guard(self, "Guard", spec=spec, deployment=deployment, data=self._buckets.data)
        shared = SharedSettings(
            name=deployment, spec=spec, root=root, buckets=self._buckets, key=key, emulated=emulated
        )
        self._stages = self._build_stages(shared, network, generation)
        if key:
            for role in (*(stage.role for stage in self._stages), self._guard.role, self._cleanup.role):
                allow(role, ["kms:Decrypt", "kms:GenerateDataKey"], [key.key_arn])
        self._cleanup.allow_revoke_group_rules(names.TAG_DEPLOYMENT, deployment)
        claim = {"deployment": deployment, "owner": owner, "topology": spec.name}
        self._order(deployment, claim, [part for part in (network, self._share) if part])
        self._output(spec)
        if not emulated:
            for finding in preflight.offline(spec):
                of_retired = finding.rule == preflight.retired_type.__name__
                if not (of_retired and retired):
                    show = " To see the topology's template, add `-c retired=yes`." if of_retired else ""
                    Annotations.of(self).add_error(f"{finding.sentence}{show}")

    def _file_system(self, network: Network, key: kms.IKey | None) -> Share:
        subnets = ec2.SubnetSelection(subnets=network.subnets)
        return Share(self, "Share", vpc=network.vpc, vpc_subnets=subnets, encryption_key=key)

    def _build_stages(self, deployment: SharedSettings, network: Network | None, generation: int) -> list[Stage]:
        spec, stages = deployment.spec, list[Stage]()
        if network and (cluster := spec.preprocessing):
            stages.append(
                Preprocessing(self, "Preprocessing", deployment, spec=cluster, network=network, generation=generation)
            )
        if network and spec.training:
            stages.append(Training(self, "Training", deployment, network=network, share=self._share))
        if spec.managed:
            stages.append(Managed(self, "Managed", deployment, spec=spec.managed))
        return stages

    def _order(self, deployment: str, claim: dict[str, str], shared: Sequence[IConstruct]) -> None:
        """Set the order in which resources are created. CloudFormation deletes them in reverse order.

        The claim is created first, then the guard, then everything that is charged by the hour. The network is also
        created after the guard, because its deletion might need a second attempt by the guard. A bucket is emptied
        after the resources that write to it are deleted.
        """
        machines = [machine for stage in self._stages for machine in stage.machines]
        for emptied in self._buckets.emptied:
            _before(emptied, machines)
        _before(self._cleanup.claim(**claim), [self._guard, *machines])
        _before(self._guard, [*machines, *shared])
        written = (names.extension_parameter(deployment), names.guard_parameter(deployment))
        _before(self._cleanup.delete_parameters(written), [self._guard])

    def _output(self, spec: topology.Topology) -> None:
        values = {
            names.OUTPUT_RAW_BUCKET: self._buckets.raw.bucket_name,
            names.OUTPUT_DATA_BUCKET: self._buckets.data.bucket_name,
            names.OUTPUT_LOG_BUCKET: self._buckets.log.bucket_name,
            names.OUTPUT_GUARD: self._guard.function.function_name,
        }
        for stage in self._stages:
            values |= stage.outputs
        if spec.share:
            values[names.OUTPUT_SHARE_ID] = self._share.files.file_system_id if self._share else spec.share
        if spec.inputs:
            values[names.OUTPUT_INPUTS] = " ".join(spec.inputs)
        if spec.max_dollars:
            values[names.OUTPUT_MAX_DOLLARS] = str(spec.max_dollars)
        for name, value in values.items():
            CfnOutput(self, name, value=value)


def _before(first: IConstruct, others: Sequence[IConstruct]) -> None:
    """Make CloudFormation create `others` after `first`, and delete them before `first`."""
    for other in others:
        other.node.add_dependency(first)
