"""Emulates the operations of EMR's API on the clusters that `cluster.py` runs.

ministack stores the records of clusters, steps and instance groups. Without this module, ministack would
report clusters and steps as finished immediately. Here they really run.
"""

from collections.abc import Callable, Mapping
from typing import Any

from shoal_local_aws.emr.cluster import TERMINATED, EmulatedCluster
from shoal_local_aws.emr.traffic import refusal_of_groups
from shoal_local_aws.faults import zones
from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import AttemptFaults
from shoal_local_aws.nodes.machine import Machines
from shoal_local_aws.seams import ec2, emr, requests
from shoal_local_aws.service import Record, RefusedError, answering, json_operation

# Rule: The idle time is between a minute and a week. Source: botocore emr PutAutoTerminationPolicy.
_IDLE_SECONDS = range(60, 604_801)
# Belief: EMR 7 has these releases. No check: the acceptance run needs only the release that it deploys.
_RELEASES = ("emr-6.0.0", *(f"emr-7.{minor}.0" for minor in range(14)))
"""Emulated releases: EMR 7, and the default of mrjob."""
_HADOOP = {"emr-7": "3.4.1", "emr-6": "3.2.1"}
"""Hadoop version by series of EMR releases."""
_MANAGED_TAG = "for-use-with-amazon-emr-managed-policies"
_clusters: dict[str, EmulatedCluster] = {}


def cluster_of(identifier: str) -> EmulatedCluster:
    """Return the cluster with this id. Raises RefusedError for an unknown id."""
    # Rule: An unknown cluster is an invalid request. Source: github.com/hashicorp/terraform-provider-aws, emr.
    if identifier not in _clusters:
        raise RefusedError("InvalidRequestException", f"Cluster id '{identifier}' is not valid.")
    return _clusters[identifier]


def _job_flow(identifier: str) -> EmulatedCluster:
    # Rule: An unknown job flow is a validation error. Source: raster-foundry/raster-foundry#352.
    if identifier not in _clusters:
        raise RefusedError("ValidationException", "Specified job flow ID does not exist.")
    return _clusters[identifier]


def clusters() -> list[EmulatedCluster]:
    """Return all clusters in the region of the current request."""
    return [_clusters[identifier] for identifier in emr.clusters if identifier in _clusters]


def install(machines: Machines, faults: Faults) -> None:
    """Replace ministack's EMR operations, so that clusters boot, run steps and terminate."""
    make_step, run_job_flow = emr.make_step.now, emr.operations.now("RunJobFlow")

    def pending(configuration: Record) -> Record:
        step: Record = make_step(configuration)
        created = step["Status"]["Timeline"]["CreationDateTime"]
        step["Status"] = {"State": "PENDING", "StateChangeReason": {}, "Timeline": {"CreationDateTime": created}}
        return step

    def run(request: Record) -> Any:
        _check(request)
        known = set(emr.clusters)
        answer = run_job_flow(request)
        for identifier in set(emr.clusters) - known:
            record = emr.clusters[identifier]
            _keep_attributes(record, request)
            _clusters[identifier] = EmulatedCluster(
                record=record,
                steps=emr.steps[identifier],
                machine=machines.make(
                    "clusters",
                    identifier,
                    {"USER": "hadoop"},
                    profile=record["Ec2InstanceAttributes"]["IamInstanceProfile"],
                ),
                start_error=_start_error(record, faults),
                attempt_faults=lambda: faults.find(AttemptFaults),
                idle_seconds=(request.get("AutoTerminationPolicy") or {}).get("IdleTimeout"),
            )
            _clusters[identifier].start()
        return answer

    emr.make_step.put(pending)
    emr.operations.put(
        RunJobFlow=answering(requests.json_error, run),
        **{name: json_operation(operation) for name, operation in _OPERATIONS.items()},
    )


def _start_error(record: Record, faults: Faults) -> str:
    """Return the reason why a cluster does not start, or an empty string if it starts."""
    refused = _refusal_of_subnet(record) or refusal_of_groups(record["Ec2InstanceAttributes"])
    if refused:
        return refused
    zone = record["Ec2InstanceAttributes"]["Ec2AvailabilityZone"]
    for group in record["InstanceGroups"]:
        # Rule: A zone without the type ends the cluster. Source: "VALIDATION_ERROR_INSTANCE_TYPE_NOT_SUPPORTED".
        if zone not in zones.offering(kind := group["InstanceType"], faults):
            return f"The requested instance type {kind} is not supported in the requested Availability Zone."
    return ""


def _refusal_of_subnet(record: Record) -> str:
    """Return the reason why EMR cannot start a cluster in its subnet, or an empty string."""
    name = record["Ec2InstanceAttributes"].get("Ec2SubnetId")
    if not name:
        return ""
    # Rule: An unknown subnet ends the cluster. Source: Wittline/pyspark-on-aws-emr#3.
    if name not in ec2.subnets:
        return f"The VPC/subnet configuration was invalid: The subnet {name} does not exist."
    tagged = {"Key": _MANAGED_TAG, "Value": "true"}
    # Rule: The policy of EMR's role requires tags. Source: terraform-aws-modules/terraform-aws-emr#3.
    if tagged in record.get("Tags", ()) and tagged not in ec2.tags.get(name, ()):
        return f"Service role {record['ServiceRole']} has insufficient EC2 permissions"
    return ""


def _keep_attributes(record: Record, request: Record) -> None:
    """Store the attributes that EMR's DescribeCluster returns but ministack drops."""
    instances = request.get("Instances") or {}
    subnet = ec2.subnets.get(instances.get("Ec2SubnetId", ""))
    if subnet is not None:
        record["Ec2InstanceAttributes"]["Ec2AvailabilityZone"] = subnet["AvailabilityZone"]
    for name in ("ServiceAccessSecurityGroup", "AdditionalMasterSecurityGroups", "AdditionalSlaveSecurityGroups"):
        if name in instances:
            record["Ec2InstanceAttributes"][name] = instances[name]
    version = _HADOOP.get(request.get("ReleaseLabel", "").partition(".")[0], "")
    others = [each for each in request.get("Applications") or [] if each.get("Name") != "Hadoop"]
    record["Applications"] = [{"Name": "Hadoop", "Version": version}, *others]


def _add_steps(request: Record) -> Record:
    cluster = _job_flow(request["JobFlowId"])
    # Rule: An ended cluster takes no steps. Source: botocore emr AddJobFlowSteps.
    if cluster.state in ("TERMINATING", *TERMINATED):
        raise RefusedError(
            "ValidationException", "A job flow that is shutting down, terminated, or finished may not be modified."
        )
    return {"StepIds": cluster.add([emr.make_step.now(step) for step in request.get("Steps") or []])}


def _list_steps(request: Record) -> Record:
    """Return the steps of a cluster, the newest first."""
    cluster_of(request["ClusterId"])
    states = request.get("StepStates")
    return {
        "Steps": [
            step
            # Rule: ListSteps begins with the newest step. Source: botocore emr ListSteps.
            for step in reversed(emr.steps[request["ClusterId"]])
            if not states or step["Status"]["State"] in states
        ]
    }


def _cancel_steps(request: Record) -> Record:
    cluster = cluster_of(request["ClusterId"])
    forced = request.get("StepCancellationOption") == "TERMINATE_PROCESS"
    return {"CancelStepsInfoList": [cluster.cancel(step, forced=forced) for step in request["StepIds"]]}


def _terminate(request: Record) -> Record:
    clusters = [_job_flow(identifier) for identifier in request["JobFlowIds"]]
    for cluster in clusters:
        # Rule: A protected cluster is not terminated. Source: cloud-custodian/cloud-custodian#6409.
        if cluster.record["TerminationProtected"]:
            raise RefusedError(
                "ValidationException", "Could not shut down one or more job flows since they are termination protected."
            )
    for cluster in clusters:
        cluster.terminate("USER_REQUEST", "Terminated by user request")
    return {}


def _list_instances(request: Record) -> Record:
    """Return one record for each requested instance. All records stand for the same emulated machine."""
    cluster = cluster_of(request["ClusterId"])
    state = "RUNNING" if cluster.state in ("RUNNING", "WAITING") else cluster.state
    state = {"STARTING": "PROVISIONING", "TERMINATED_WITH_ERRORS": "TERMINATED"}.get(state, state)
    if state not in (request.get("InstanceStates") or [state]):
        return {"Instances": []}
    count = "RequestedInstanceCount" if state == "TERMINATED" else "RunningInstanceCount"
    roles = request.get("InstanceGroupTypes")
    return {
        "Instances": [
            {
                "Id": f"ci-{group['Id'][3:]}{number}",
                "Ec2InstanceId": f"i-{cluster.record['Id'][2:].lower()}{place}{number:03d}",
                "InstanceGroupId": group["Id"],
                "InstanceType": group["InstanceType"],
                "Market": group["Market"],
                "PrivateIpAddress": "127.0.0.1",
                "Status": {"State": state, "Timeline": cluster.record["Status"]["Timeline"]},
            }
            for place, group in enumerate(cluster.record["InstanceGroups"])
            if not roles or group["InstanceGroupType"] in roles
            for number in range(group[count])
        ]
    }


def _check(request: Record) -> None:
    """Raise RefusedError for a RunJobFlow request that EMR would refuse."""
    # Belief: An unknown release label is refused. Check: unknown-release.
    if (label := request.get("ReleaseLabel", "")) not in _RELEASES:
        raise RefusedError("ValidationException", f"The supplied release label is invalid: {label}.")
    seconds = (request.get("AutoTerminationPolicy") or {}).get("IdleTimeout", _IDLE_SECONDS.start)
    # Belief: An idle time outside of the limits is a validation error. Check: idle-time.
    if seconds not in _IDLE_SECONDS:
        raise RefusedError("ValidationException", f"IdleTimeout {seconds} is not between 60 and 604800 seconds.")
    if request.get("ManagedScalingPolicy"):
        raise RefusedError("ValidationException", "Managed scaling is not emulated.")
    if (request.get("Instances") or {}).get("InstanceFleets"):
        raise RefusedError("ValidationException", "Instance fleets (InstanceFleets) are not emulated.")
    roles = {group.get("InstanceRole") for group in (request.get("Instances") or {}).get("InstanceGroups") or []}
    # Belief: A task group needs a core group. Check: task-without-core.
    if "TASK" in roles and "CORE" not in roles:
        raise RefusedError("ValidationException", "Task instance group requires a core instance group.")


_configurations = requests.regional_table()


def _create_configuration(request: Record) -> Record:
    name = request["Name"]
    # Belief: A security configuration is created once. Check: second-security-configuration.
    if name in _configurations:
        raise RefusedError("InvalidRequestException", f"Security configuration with name '{name}' already exists.")
    _configurations[name] = {
        "Name": name,
        "SecurityConfiguration": request["SecurityConfiguration"],
        "CreationDateTime": requests.now(),
    }
    return _configurations[name]


def _list_configurations(request: Record) -> Record:
    del request
    return {"SecurityConfigurations": list(_configurations.values())}


def _delete_configuration(request: Record) -> Record:
    # Rule: Only an existing configuration is deleted. Source: github.com/hashicorp/terraform-provider-aws, emr.
    if _configurations.pop(name := request["Name"], None) is None:
        raise RefusedError("InvalidRequestException", f"Security configuration with name '{name}' does not exist.")
    return {}


_OPERATIONS: Mapping[str, Callable[[Record], Record]] = {
    "AddJobFlowSteps": _add_steps,
    "CancelSteps": _cancel_steps,
    "ListSteps": _list_steps,
    "TerminateJobFlows": _terminate,
    "ListInstances": _list_instances,
    "CreateSecurityConfiguration": _create_configuration,
    "ListSecurityConfigurations": _list_configurations,
    "DeleteSecurityConfiguration": _delete_configuration,
}
