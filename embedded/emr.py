"""Plays EMR: the operations of its API, over the clusters that `cluster.py` runs.

ministack keeps the records of clusters, steps and instance groups; what it answers at once as done (a cluster that
waits, a step that completed) is here the beginning of something that really happens.
"""

from typing import Any

from ministack.services import emr

from embedded.cluster import TERMINATED, Cluster
from embedded.machine import Machines
from embedded.service import Record, RefusedError, json_operation

_IDLE_SECONDS = range(60, 604_801)
_clusters: dict[str, Cluster] = {}
_security_configurations: dict[str, Record] = {}


def cluster_of(identifier: str) -> Cluster:
    """The cluster of an id.

    Raises:
        RefusedError: there never was one.
    """
    if identifier not in _clusters:
        raise RefusedError("InvalidRequestException", f"Cluster id '{identifier}' is not valid.")
    return _clusters[identifier]


def install(machines: Machines) -> None:
    """Make ministack's EMR a service whose clusters boot, run steps and end."""
    make_step = emr._make_step
    run_job_flow = emr._run_job_flow

    def pending(configuration: Record) -> Record:
        step: Record = make_step(configuration)
        created = step["Status"]["Timeline"]["CreationDateTime"]
        step["Status"] = {"State": "PENDING", "StateChangeReason": {}, "Timeline": {"CreationDateTime": created}}
        return step

    def run(request: Record) -> Any:
        refused = json_operation(_check_policy)(request)
        if refused[0] >= 300:
            return refused
        known = set(emr._clusters)
        answer = run_job_flow(request)
        for identifier in set(emr._clusters) - known:
            record = emr._clusters[identifier]
            _keep_attributes(record, request)
            _clusters[identifier] = Cluster(
                record=record,
                steps=emr._steps[identifier],
                machine=machines.make("clusters", identifier, {"USER": "hadoop"}),
                idle_seconds=(request.get("AutoTerminationPolicy") or {}).get("IdleTimeout"),
            )
            _clusters[identifier].start()
        return answer

    emr._make_step = pending
    emr._HANDLERS["RunJobFlow"] = run
    for name, operation in _OPERATIONS.items():
        emr._HANDLERS[name] = json_operation(operation)


def _keep_attributes(record: Record, request: Record) -> None:
    """What DescribeCluster tells and ministack drops."""
    instances = request.get("Instances") or {}
    for name in ("ServiceAccessSecurityGroup", "AdditionalMasterSecurityGroups", "AdditionalSlaveSecurityGroups"):
        if name in instances:
            record["Ec2InstanceAttributes"][name] = instances[name]
    for name in ("SecurityConfiguration", "CustomAmiId", "EbsRootVolumeSize", "OSReleaseLabel", "Configurations"):
        if name in request:
            record[name] = request[name]


def _add_steps(request: Record) -> Record:
    cluster = cluster_of(request["JobFlowId"])
    if cluster.state in ("TERMINATING", *TERMINATED):
        raise RefusedError(
            "ValidationException", "A job flow that is shutting down, terminated, or finished may not be modified."
        )
    return {"StepIds": cluster.add([emr._make_step(step) for step in request.get("Steps") or []])}


def _cancel_steps(request: Record) -> Record:
    cluster = cluster_of(request["ClusterId"])
    return {"CancelStepsInfoList": [cluster.cancel(step) for step in request["StepIds"]]}


def _terminate(request: Record) -> Record:
    clusters = [cluster_of(identifier) for identifier in request["JobFlowIds"]]
    for cluster in clusters:
        if cluster.record["TerminationProtected"]:
            raise RefusedError(
                "ValidationException", "Could not shut down one or more job flows since they are termination protected."
            )
    for cluster in clusters:
        cluster.terminate("USER_REQUEST", "Terminated by user request")
    return {}


def _list_instances(request: Record) -> Record:
    """One instance for every requested one; all of them are the one machine that plays the cluster."""
    cluster = cluster_of(request["ClusterId"])
    state = "RUNNING" if cluster.state in ("RUNNING", "WAITING") else cluster.state
    state = {"STARTING": "PROVISIONING", "TERMINATED_WITH_ERRORS": "TERMINATED"}.get(state, state)
    return {
        "Instances": [
            {
                "Id": f"ci-{group['Id'][3:]}{number}",
                "Ec2InstanceId": f"i-{cluster.record['Id'][2:].lower()}{number:04d}",
                "InstanceGroupId": group["Id"],
                "InstanceType": group["InstanceType"],
                "Market": group["Market"],
                "PrivateIpAddress": "127.0.0.1",
                "Status": {"State": state},
            }
            for group in cluster.record["InstanceGroups"]
            for number in range(group["RequestedInstanceCount"])
        ]
    }


def _check_policy(request: Record) -> Record:
    seconds = (request.get("AutoTerminationPolicy") or {}).get("IdleTimeout", _IDLE_SECONDS.start)
    if seconds not in _IDLE_SECONDS:
        raise RefusedError("ValidationException", f"IdleTimeout {seconds} is not between 60 and 604800 seconds.")
    return {}


def _put_auto_termination(request: Record) -> Record:
    _check_policy(request)
    policy = request.get("AutoTerminationPolicy") or {}
    cluster_of(request["ClusterId"]).idle_seconds = policy.get("IdleTimeout", 3600)
    return {}


def _get_auto_termination(request: Record) -> Record:
    seconds = cluster_of(request["ClusterId"]).idle_seconds
    return {} if seconds is None else {"AutoTerminationPolicy": {"IdleTimeout": seconds}}


def _remove_auto_termination(request: Record) -> Record:
    cluster_of(request["ClusterId"]).idle_seconds = None
    return {}


def _create_security_configuration(request: Record) -> Record:
    name = request["Name"]
    if name in _security_configurations:
        raise RefusedError("InvalidRequestException", f"Security configuration with name '{name}' already exists.")
    _security_configurations[name] = {
        "Name": name,
        "SecurityConfiguration": request["SecurityConfiguration"],
        "CreationDateTime": emr._now_iso(),
    }
    return {name: value for name, value in _security_configurations[name].items() if name != "SecurityConfiguration"}


def _security_configuration(request: Record) -> Record:
    name = request["Name"]
    if name not in _security_configurations:
        raise RefusedError("InvalidRequestException", f"Security configuration with name '{name}' does not exist.")
    return _security_configurations[name]


def _list_security_configurations(request: Record) -> Record:
    del request
    return {
        "SecurityConfigurations": [
            {"Name": entry["Name"], "CreationDateTime": entry["CreationDateTime"]}
            for entry in _security_configurations.values()
        ]
    }


def _delete_security_configuration(request: Record) -> Record:
    del _security_configurations[_security_configuration(request)["Name"]]
    return {}


_OPERATIONS = {
    "AddJobFlowSteps": _add_steps,
    "CancelSteps": _cancel_steps,
    "TerminateJobFlows": _terminate,
    "ListInstances": _list_instances,
    "PutAutoTerminationPolicy": _put_auto_termination,
    "GetAutoTerminationPolicy": _get_auto_termination,
    "RemoveAutoTerminationPolicy": _remove_auto_termination,
    "CreateSecurityConfiguration": _create_security_configuration,
    "DescribeSecurityConfiguration": _security_configuration,
    "ListSecurityConfigurations": _list_security_configurations,
    "DeleteSecurityConfiguration": _delete_security_configuration,
}
