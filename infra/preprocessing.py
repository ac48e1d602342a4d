"""Creates the EMR cluster that turns raw reviews into a dataset."""

from aws_cdk import Stack
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra import parts, topology
from infra.emr_cluster import Cluster, Place
from infra.network import Network
from infra.payload import Payload


class Preprocessing(Cluster):
    """The cluster of a deployment, on whose nodes Shoal is installed."""

    payload: Payload

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        spec: parts.PreprocessingSpec,
        idle_minutes: int,
        deployment: str,
        generation: int,
        network: Network,
        log: s3.Bucket,
        payload: Payload,
    ) -> None:
        """Build the cluster, of this generation as in `Cluster`."""
        super().__init__(
            scope,
            construct_id,
            name=topology.stack_name(deployment),
            spec=spec,
            idle_minutes=idle_minutes,
            place=Place(vpc=network.vpc, subnet=network.subnet, shell=network.shell, after=network.node_dependencies),
            log=log,
            log_prefix=topology.EMR_LOGS_PREFIX,
            generation=generation,
        )
        self.payload = payload
        region = Stack.of(self).region
        self.add_bootstrap_action("Install Shoal", payload.script, payload.code, payload.wheels, region)

    @property
    def _rules(self) -> str:
        return "Groups"
