"""Creates the guard of a deployment: a `StackGuard` that also knows when the deployment's nodes were last busy.

Every resource that is charged by the hour must depend on the guard, so that the guard is created first and deleted
last. The network must also depend on the guard. The network's first deletion can fail because EMR leaves resources in
the network. The guard then repeats the deletion.
"""

from aws_cdk import Stack
from aws_cdk import aws_s3 as s3
from constructs import Construct
from shoal_guard.grants import accept_keys, accept_pattern, region_in_rule
from shoal_guard.handlers.cleanup import job_prefix
from shoal_guard.stack_guard import StackGuard

from common import names
from infra import catalog, cost, sizing, topology
from infra.managed_spec import ManagedSpec


class Guard(StackGuard):
    """Guard that also stops idle nodes. Before it deletes the stack, it stops runs with a checkpoint."""

    def __init__(
        self, scope: Construct, construct_id: str, *, spec: topology.Topology, deployment: str, data: s3.IBucket
    ) -> None:
        """Create the guard. `data` is the data bucket, to which the nodes write their activity markers."""
        requests = f"{names.REQUESTS}{deployment}.json"
        copy = f"{names.REQUESTS}{deployment}.guard.json"
        super().__init__(
            scope,
            construct_id,
            name=deployment,
            mail=spec.guard.mail,
            tag=names.TAG_DEPLOYMENT,
            groups=f"{Stack.of(scope).stack_name}-*",
            settings={
                "max_hours": spec.guard.max_hours,
                "idle_minutes": spec.guard.idle_minutes,
                "bucket": data.bucket_name,
                "budget": spec.guard.budget,
                "keep": True if spec.data.bucket else spec.data.keep,
                "nodes_prefix": names.NODES,
                "requests": requests,
                "copy": copy,
                "start_tag": names.TAG_START,
                "account": names.guard_parameter(deployment),
                "extension": names.extension_parameter(deployment),
                **prices(spec),
                **(_jobs(spec.managed, deployment, spec.region) if spec.managed else {}),
            },
        )
        self.grant("ec2", "DescribeInstances", on="*")
        runs = f"{names.RUNS}{deployment}.*/{names.END_NAME}"
        listed = [names.NODES, requests, copy, runs]
        self.grant("s3", "ListBucket", on=data.bucket_arn, where={"s3:prefix": listed}, operator="StringLike")
        for key in (requests, copy):
            self.grant("s3", "GetObject", "PutObject", on=data.arn_for_objects(key))
        self.grant("s3", "GetObject", on=data.arn_for_objects(runs))
        accept_keys(self.role, data, runs)
        if spec.managed:
            jobs = Stack.of(self).format_arn(
                service="sagemaker", resource="training-job", resource_name=f"{job_prefix(deployment)}-*"
            )
            self.grant("sagemaker", "ListTrainingJobs", on="*")
            self.grant("sagemaker", "StopTrainingJob", on=jobs)
            region = region_in_rule(Stack.of(self))
            named = f"arn:<AWS::Partition>:sagemaker:{region}:<AWS::AccountId>:training-job/{job_prefix(deployment)}-*"
            accept_pattern(self.role, named, "The pattern matches only the names of the deployment's jobs.")


def prices(spec: topology.Topology) -> dict[str, object]:
    """Return the prices from which the guard computes the cost of the deployment.

    `gpu` and `emr`: dollars per hour of a node with its volumes, by instance type. `standing`: dollars per hour of
    everything that runs as long as the stack exists. `by_use`: dollars per GiB. Spot nodes count at the on-demand
    price, which is the upper limit. `unpriced`: the names of items without a known price, which count as 0.
    """
    known = catalog.prices(spec.region)
    emr_types = {name for _, name, _, _ in spec.preprocessing.groups} if spec.preprocessing else set()
    volumes = cost.known(known.volume_hourly, sizing.GPU_ROOT_GIB), cost.known(known.volume_hourly, cost.EMR_GIB)
    emr = {name: (cost.known(known.hourly, name), cost.known(known.emr_hourly, name), volumes[1]) for name in emr_types}
    gpu = {name: (cost.known(known.hourly, name), volumes[0]) for each in spec.training for name in each.types}
    return {
        "gpu": {name: sum(filter(None, parts)) for name, parts in gpu.items()},
        "emr": {name: sum(filter(None, parts)) for name, parts in emr.items()},
        "standing": cost.hourly_fixed(spec),
        "by_use": {
            name: price
            for name in ("nat_gib", "efs_read_gib", "efs_write_gib")
            if (price := getattr(known.other, name)) is not None
        },
        "unpriced": ", ".join(cost.unknown(spec)),
    }


def _jobs(spec: ManagedSpec, deployment: str, region: str) -> dict[str, object]:
    """Return the prefix of the names of SageMaker jobs, and the dollars per hour of one job."""
    hourly = cost.known(catalog.prices(region).managed_hourly, spec.ec2_type) or 0.0
    return {"jobs": job_prefix(deployment), "job": spec.count * hourly}
