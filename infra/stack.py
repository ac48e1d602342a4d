"""The one stack of a deployment: its parts, who may do what, and in which order all of it is taken down.

Easy to get wrong: a refusal here must be an annotation, not an exception. `cdk destroy` synthesises too, and must work.
"""

from collections.abc import Sequence
from pathlib import Path

from aws_cdk import Annotations, CfnOutput, CustomResource, Environment, Stack, Tags
from constructs import Construct, IConstruct

from infra import catalog, topology
from infra.cleanup import Cleanup
from infra.network import Network
from infra.payload import Payload
from infra.preprocessing import Preprocessing
from infra.roles import READ, REPLACE, WRITE, allow_objects
from infra.storage import Buckets, Share
from infra.training import Training


class ShoalStack(Stack):
    """Everything of one deployment; what the topology leaves out is not created."""

    network: Network
    buckets: Buckets
    share: Share | None
    cleanup: Cleanup
    preprocessing: Preprocessing | None
    training: Training | None

    def __init__(
        self,
        scope: Construct,
        *,
        wanted: topology.Topology,
        deployment: str,
        owner: str,
        generation: int,
        root: Path,
        emulated: bool,
    ) -> None:
        """Build it; `root` is the repository, `emulated` says that no real AWS starts its machines.

        Another `generation` (from 1) brings another cluster, though nothing else has changed.
        """
        name = topology.stack_name(deployment)
        super().__init__(
            scope,
            name,
            stack_name=name,
            description=f"Shoal: {wanted.description}",
            env=Environment(region=wanted.region),
        )
        self._deployment, self._generation, self._root = deployment, generation, root
        for tag, value in (
            (topology.TAG_DEPLOYMENT, deployment),
            (topology.TAG_TOPOLOGY, wanted.name),
            (topology.TAG_OWNER, owner),
        ):
            Tags.of(self).add(tag, value)
        self.network = Network(self, "Network", zone=wanted.zone)
        self.buckets = Buckets(self, "Buckets", retain_data=wanted.retain_data)
        self.share = Share(self, "Share", network=self.network) if wanted.share else None
        self.cleanup = Cleanup(self, "Cleanup")
        self.preprocessing = self._preprocessing(wanted.preprocessing) if wanted.preprocessing else None
        self.training = self._training(wanted.training) if wanted.training else None
        self._grant()
        self._clean()
        self._output()
        if not emulated:
            self._refuse_retired(wanted)

    def _preprocessing(self, wanted: topology.Preprocessing) -> Preprocessing:
        return Preprocessing(
            self,
            "Preprocessing",
            wanted=wanted,
            deployment=self._deployment,
            generation=self._generation,
            network=self.network,
            log=self.buckets.log,
            payload=self._payload("emr", packages=("corpus", "jobs"), script="install.sh"),
        )

    def _training(self, wanted: Sequence[topology.Group]) -> Training:
        return Training(
            self,
            "Training",
            wanted=wanted,
            deployment=self._deployment,
            network=self.network,
            data=self.buckets.data,
            share=self.share,
            payload=self._payload("gpu", packages=("corpus", "trainer"), script="boot.sh"),
        )

    def _payload(self, kind: str, *, packages: Sequence[str], script: str) -> Payload:
        return Payload(
            self,
            f"{kind.capitalize()}Payload",
            root=self._root,
            packages=packages,
            wheels=self._root / "build" / "wheels" / f"{kind}.zip",
            script=self._root / "bootstrap" / kind / script,
        )

    def _grant(self) -> None:
        """Every grant of the stack, but what a construct's own service needs of its own parts."""
        raw, data, log = self.buckets.raw, self.buckets.data, self.buckets.log
        if self.preprocessing:
            role = self.preprocessing.role
            self.preprocessing.payload.allow_download(role)
            allow_objects(role, raw, READ)
            allow_objects(role, data, REPLACE)
            allow_objects(role, log, WRITE)
            self.network.admit(self.preprocessing.primary)
            self.network.admit(self.preprocessing.core)
            self.cleanup.allow_untie(self.preprocessing.groups)
        if self.training:
            role = self.training.role
            self.training.payload.allow_download(role)
            allow_objects(role, data, READ)
            allow_objects(role, data, REPLACE, under=(topology.RUNS_PREFIX, topology.NODES_PREFIX))
            self.network.admit(self.training.nodes)
            if self.share:
                self.share.admit(self.training.nodes, role)
        for bucket in self.buckets.all:
            if bucket not in self.buckets.kept:
                self.cleanup.allow_empty(bucket)

    def _clean(self) -> None:
        """What is cleaned on deletion, and after whom: CloudFormation deletes in reverse of these dependencies."""
        writers: list[IConstruct] = [*self.training.groups] if self.training else []
        if self.preprocessing:
            writers.append(self.preprocessing.cluster)
            _delete_before(self.cleanup.untie(self.preprocessing.groups), [self.preprocessing.cluster])
        for bucket in self.buckets.all:
            _delete_before(self.cleanup.empty(bucket, keep=bucket in self.buckets.kept), writers)

    def _output(self) -> None:
        values = {
            topology.OUTPUT_RAW_BUCKET: self.buckets.raw.bucket_name,
            topology.OUTPUT_DATA_BUCKET: self.buckets.data.bucket_name,
            topology.OUTPUT_LOG_BUCKET: self.buckets.log.bucket_name,
        }
        if self.preprocessing:
            values[topology.OUTPUT_CLUSTER_ID] = self.preprocessing.cluster.ref
        if self.share:
            values[topology.OUTPUT_SHARE_ID] = self.share.files.file_system_id
        for name, value in values.items():
            CfnOutput(self, name, value=value)

    def _refuse_retired(self, wanted: topology.Topology) -> None:
        for name in topology.instance_types(wanted):
            retired = catalog.find(name).retired
            if retired:
                Annotations.of(self).add_error(
                    f"AWS retired {name} ({retired.since}) and starts none; in topologies/{wanted.name}.yaml take "
                    f"{retired.successor}, today's equivalent."
                )


def _delete_before(cleaning: CustomResource, writers: Sequence[IConstruct]) -> None:
    for writer in writers:
        writer.node.add_dependency(cleaning)
