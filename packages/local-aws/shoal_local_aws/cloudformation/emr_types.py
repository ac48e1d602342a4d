"""CloudFormation types of EMR."""

import json
from collections.abc import Mapping

from shoal_local_aws.cloudformation.resource_type import TAGS, Created, ResourceType, call_service, shown_as_creating
from shoal_local_aws.emr.api import cluster_of
from shoal_local_aws.emr.cluster import TERMINATED
from shoal_local_aws.seams.cloudformation import generated_name
from shoal_local_aws.service import Record, client

# Belief: New tags, policies and sizes keep a cluster. No check: it takes a stack with a cluster.
_IN_PLACE = (TAGS, "StepConcurrencyLevel", "AutoTerminationPolicy", "Instances")


def _create_cluster(logical: str, properties: Record, stack: str) -> Created:
    identifier = call_service("emr", "run_job_flow", _job_flow(properties))["JobFlowId"]
    cluster = cluster_of(identifier)
    with shown_as_creating(stack, logical, "AWS::EMR::Cluster", identifier):
        cluster.wait_until_ready()
        if cluster.state in TERMINATED:
            raise ValueError(cluster.record["Status"]["StateChangeReason"]["Message"])
    return identifier, {"MasterPublicDNS": cluster.record["MasterPublicDnsName"]}


def _job_flow(properties: Record) -> Record:
    """Return the RunJobFlow request for a cluster with a template's properties."""
    instances = dict(properties["Instances"])
    groups = [
        {**nodes, "InstanceRole": role}
        for role, field in (("MASTER", "MasterInstanceGroup"), ("CORE", "CoreInstanceGroup"))
        if (nodes := instances.pop(field, None))
    ]
    groups += [{**nodes, "InstanceRole": "TASK"} for nodes in instances.pop("TaskInstanceGroups", [])]
    instances = {"KeepJobFlowAliveWhenNoSteps": True, **instances, "InstanceGroups": groups}
    return {**properties, "Instances": instances}


def _delete_cluster(identifier: str, properties: Record) -> None:
    del properties
    client("emr").terminate_job_flows(JobFlowIds=[identifier])
    cluster_of(identifier).wait_until_terminated()


def _refuse_change(identifier: str, old: Record, new: Record) -> None:
    del old, new
    raise ValueError(f"The embedded AWS does not change tags, nodes and policies of a cluster ({identifier}).")


def _create_security_configuration(logical: str, properties: Record, stack: str) -> Created:
    name = properties.get("Name") or generated_name(stack, logical)
    configuration = properties["SecurityConfiguration"]
    text = configuration if isinstance(configuration, str) else json.dumps(configuration)
    client("emr").create_security_configuration(Name=name, SecurityConfiguration=text)
    return name, {"Name": name}


TYPES: Mapping[str, ResourceType] = {
    "AWS::EMR::Cluster": ResourceType(
        create=_create_cluster, delete=_delete_cluster, change=_refuse_change, changeable=_IN_PLACE
    ),
    "AWS::EMR::SecurityConfiguration": ResourceType(
        create=_create_security_configuration,
        delete=lambda identifier, _: client("emr").delete_security_configuration(Name=identifier),
        gone=("InvalidRequestException",),
        tagged=False,
    ),
}
