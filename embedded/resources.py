"""The CloudFormation resource types that ministack lacks: how each is created, changed and deleted.

Every handler calls the service's own operation with the template's values, and botocore refuses what the operation
does not have: a template that is wrong on AWS is wrong here.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError
from ministack.core.responses import get_account_id
from ministack.services import ec2
from ministack.services.cloudformation import provisioners

from embedded.cluster import TERMINATED
from embedded.emr import cluster_of
from embedded.service import Record, client

TAGS = "Tags"
Created = tuple[str, dict[str, str]]
_EMR_IN_PLACE = (TAGS, "StepConcurrencyLevel", "AutoTerminationPolicy")


@dataclass(frozen=True, kw_only=True)
class ResourceType:
    """How CloudFormation handles a type.

    create: logical id, properties and stack name to physical id and attributes.
    delete: physical id and properties.
    change: physical id, old and new properties.
    changeable: the properties that `change` applies in place; any other one that changes replaces the resource.
    tagged: whether it takes the stack's tags, in a property `Tags`.
    """

    create: Callable[[str, Record, str], Created]
    delete: Callable[[str, Record], None]
    change: Callable[[str, Record, Record], None] | None = None
    changeable: tuple[str, ...] = ()
    tagged: bool = True


# Forms


def _conform(value: Any, shape: Any) -> Any:
    """A template's value in the form that an API's shape asks for: templates hold numbers as strings and vice versa."""
    if shape.type_name == "structure":
        return {name: _conform(inner, shape.members[name]) if name in shape.members else inner
                for name, inner in value.items()}  # fmt: skip
    if shape.type_name == "list":
        return [_conform(inner, shape.member) for inner in value]
    if shape.type_name == "map":
        return {str(name): _conform(inner, shape.value) for name, inner in value.items()}
    if shape.type_name in ("integer", "long"):
        return int(value)
    if shape.type_name in ("double", "float"):
        return float(value)
    if shape.type_name == "boolean":
        return str(value).lower() == "true"
    return str(value) if isinstance(value, int | float) else value


def _call(service: str, operation: str, parameters: Mapping[str, Any]) -> Any:
    """Call an operation with a template's values; botocore refuses parameters that the operation does not have."""
    caller = client(service)
    name = caller.meta.method_to_api_mapping[operation]
    shape = caller.meta.service_model.operation_model(name).input_shape
    return getattr(caller, operation)(**_conform(parameters, shape))


def _tagged(properties: Record, kind: str) -> Record:
    """The TagSpecifications of an EC2 resource."""
    tags = properties.get(TAGS)
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": tags}]} if tags else {}


def _change_ec2_tags(identifier: str, old: Record, new: Record) -> None:
    provisioners._ec2_apply_tags(identifier, new, old)


def _named(stack: str, logical: str) -> str:
    name: str = provisioners._physical_name(stack, logical)
    return name


# EC2


def _create_rule(direction: str) -> Callable[[str, Record, str], Created]:
    def create(logical: str, properties: Record, stack: str) -> Created:
        del logical, stack
        permission = provisioners._ec2_sg_permissions([properties])[0]
        answer = _call(
            "ec2",
            f"authorize_security_group_{direction}",
            {
                "GroupId": properties["GroupId"],
                "IpPermissions": [{name: value for name, value in permission.items() if value != []}],
            },
        )
        identifier = answer["SecurityGroupRules"][0]["SecurityGroupRuleId"]
        return identifier, {"Id": identifier}

    return create


def _delete_rule(direction: str) -> Callable[[str, Record], None]:
    def delete(identifier: str, properties: Record) -> None:
        revoke = getattr(client("ec2"), f"revoke_security_group_{direction}")
        with suppress(ClientError):  # a rule that is gone, alone or with its group, is what was wanted
            revoke(GroupId=properties["GroupId"], SecurityGroupRuleIds=[identifier])

    return delete


def _create_flow_log(logical: str, properties: Record, stack: str) -> Created:
    del logical, stack
    values = {name: value for name, value in properties.items() if name not in ("ResourceId", TAGS)}
    answer = _call(
        "ec2",
        "create_flow_logs",
        {**values, "ResourceIds": [properties["ResourceId"]], **_tagged(properties, "vpc-flow-log")},
    )
    identifier = answer["FlowLogIds"][0]
    ec2._tags[identifier] = properties.get(TAGS) or []
    return identifier, {"Id": identifier}


def _create_address(logical: str, properties: Record, stack: str) -> Created:
    del logical, stack
    answer = _call("ec2", "allocate_address", {"Domain": "vpc", **_tagged(properties, "elastic-ip")})
    return answer["PublicIp"], {"AllocationId": answer["AllocationId"], "PublicIp": answer["PublicIp"]}


def _allocation(address: str) -> str:
    known = client("ec2").describe_addresses()["Addresses"]
    return str(next(entry["AllocationId"] for entry in known if entry["PublicIp"] == address))


def _delete_address(identifier: str, properties: Record) -> None:
    del properties
    client("ec2").release_address(AllocationId=_allocation(identifier))


def _change_address_tags(identifier: str, old: Record, new: Record) -> None:
    _change_ec2_tags(_allocation(identifier), old, new)


def _create_nat_gateway(logical: str, properties: Record, stack: str) -> Created:
    del logical, stack
    values = {name: value for name, value in properties.items() if name != TAGS}
    answer = _call("ec2", "create_nat_gateway", {**values, **_tagged(properties, "natgateway")})
    identifier = answer["NatGateway"]["NatGatewayId"]
    return identifier, {"NatGatewayId": identifier}


def _create_placement_group(logical: str, properties: Record, stack: str) -> Created:
    name = _named(stack, logical)
    values = {key: value for key, value in properties.items() if key != TAGS}
    _call("ec2", "create_placement_group", {"GroupName": name, **values, **_tagged(properties, "placement-group")})
    return name, {"GroupName": name}


# EMR


def _create_cluster(logical: str, properties: Record, stack: str) -> Created:
    del logical, stack
    answer = _call("emr", "run_job_flow", _job_flow(properties))
    cluster = cluster_of(answer["JobFlowId"])
    cluster.wait_until_ready()
    if cluster.state in TERMINATED:
        raise ValueError(cluster.record["Status"]["StateChangeReason"]["Message"])
    return answer["JobFlowId"], {"MasterPublicDNS": cluster.record["MasterPublicDnsName"]}


def _job_flow(properties: Record) -> Record:
    """RunJobFlow's request for a template's cluster."""
    instances = dict(properties["Instances"])
    groups = [
        {**group, "InstanceRole": role}
        for role, name in (("MASTER", "MasterInstanceGroup"), ("CORE", "CoreInstanceGroup"))
        if (group := instances.pop(name, None))
    ]
    groups += [{**group, "InstanceRole": "TASK"} for group in instances.pop("TaskInstanceGroups", [])]
    fleets = [
        {**fleet, "InstanceFleetType": role}
        for role, name in (("MASTER", "MasterInstanceFleet"), ("CORE", "CoreInstanceFleet"))
        if (fleet := instances.pop(name, None))
    ]
    fleets += [{**fleet, "InstanceFleetType": "TASK"} for fleet in instances.pop("TaskInstanceFleets", [])]
    instances = {"KeepJobFlowAliveWhenNoSteps": True, **instances}
    instances |= {"InstanceGroups": groups} if groups else {"InstanceFleets": fleets}
    request: Record = _renamed({**properties, "Instances": instances})
    return request


def _renamed(value: Any) -> Any:
    """CloudFormation calls two things differently than EMR does."""
    if isinstance(value, list):
        return [_renamed(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    names = {"ConfigurationProperties": "Properties", "StepProperties": "Properties"}
    return {names.get(name, name): _renamed(inner) for name, inner in value.items()}


def _delete_cluster(identifier: str, properties: Record) -> None:
    del properties
    client("emr").terminate_job_flows(JobFlowIds=[identifier])
    cluster_of(identifier).wait_until_terminated()


def _change_cluster(identifier: str, old: Record, new: Record) -> None:
    emr = client("emr")
    if old.get(TAGS) != new.get(TAGS):
        gone = {tag["Key"] for tag in old.get(TAGS) or []} - {tag["Key"] for tag in new.get(TAGS) or []}
        emr.remove_tags(ResourceId=identifier, TagKeys=sorted(gone))
        emr.add_tags(ResourceId=identifier, Tags=new.get(TAGS) or [])
    if "StepConcurrencyLevel" in new:
        _call("emr", "modify_cluster", {"ClusterId": identifier, "StepConcurrencyLevel": new["StepConcurrencyLevel"]})
    if new.get("AutoTerminationPolicy"):
        policy = {"ClusterId": identifier, "AutoTerminationPolicy": new["AutoTerminationPolicy"]}
        _call("emr", "put_auto_termination_policy", policy)
    else:
        emr.remove_auto_termination_policy(ClusterId=identifier)


def _create_security_configuration(logical: str, properties: Record, stack: str) -> Created:
    name = properties.get("Name") or _named(stack, logical)
    configuration = properties["SecurityConfiguration"]
    text = configuration if isinstance(configuration, str) else json.dumps(configuration)
    client("emr").create_security_configuration(Name=name, SecurityConfiguration=text)
    return name, {"Name": name}


# Systems Manager, Budgets


def _create_document(logical: str, properties: Record, stack: str) -> Created:
    name = properties.get("Name") or _named(stack, logical)
    values = {key: value for key, value in properties.items() if key != "UpdateMethod"}
    _call("ssm", "create_document", {**values, "Name": name, "Content": _document_text(properties)})
    return name, {}


def _document_text(properties: Record) -> str:
    content = properties["Content"]
    return content if isinstance(content, str) else json.dumps(content)


def _change_document(identifier: str, old: Record, new: Record) -> None:
    if old["Content"] != new["Content"]:
        client("ssm").update_document(Name=identifier, Content=_document_text(new), DocumentVersion="$LATEST")


def _create_budget(logical: str, properties: Record, stack: str) -> Created:
    budget = {"BudgetName": _named(stack, logical), **properties["Budget"]}
    notifications = properties.get("NotificationsWithSubscribers")
    _call(
        "budgets",
        "create_budget",
        {"AccountId": get_account_id(), "Budget": budget}
        | ({"NotificationsWithSubscribers": notifications} if notifications else {}),
    )
    return budget["BudgetName"], {}


def _change_budget(identifier: str, old: Record, new: Record) -> None:
    del old
    budget = {"BudgetName": identifier, **new["Budget"]}
    _call("budgets", "update_budget", {"AccountId": get_account_id(), "NewBudget": budget})


TYPES: Mapping[str, ResourceType] = {
    **{
        f"AWS::EC2::SecurityGroup{direction.title()}": ResourceType(
            create=_create_rule(direction), delete=_delete_rule(direction), tagged=False
        )
        for direction in ("ingress", "egress")
    },
    "AWS::EC2::FlowLog": ResourceType(
        create=_create_flow_log,
        delete=lambda identifier, _: client("ec2").delete_flow_logs(FlowLogIds=[identifier]),
        change=_change_ec2_tags,
        changeable=(TAGS,),
    ),
    "AWS::EC2::EIP": ResourceType(
        create=_create_address, delete=_delete_address, change=_change_address_tags, changeable=(TAGS,)
    ),
    "AWS::EC2::NatGateway": ResourceType(
        create=_create_nat_gateway,
        delete=lambda identifier, _: client("ec2").delete_nat_gateway(NatGatewayId=identifier),
        change=_change_ec2_tags,
        changeable=(TAGS,),
    ),
    "AWS::EC2::PlacementGroup": ResourceType(
        create=_create_placement_group,
        delete=lambda identifier, _: client("ec2").delete_placement_group(GroupName=identifier),
    ),
    "AWS::EMR::Cluster": ResourceType(
        create=_create_cluster, delete=_delete_cluster, change=_change_cluster, changeable=_EMR_IN_PLACE
    ),
    "AWS::EMR::SecurityConfiguration": ResourceType(
        create=_create_security_configuration,
        delete=lambda identifier, _: client("emr").delete_security_configuration(Name=identifier),
        tagged=False,
    ),
    "AWS::SSM::Document": ResourceType(
        create=_create_document,
        delete=lambda identifier, _: client("ssm").delete_document(Name=identifier),
        change=_change_document,
        changeable=("Content", "UpdateMethod", TAGS),
    ),
    "AWS::Budgets::Budget": ResourceType(
        create=_create_budget,
        delete=lambda identifier, _: client("budgets").delete_budget(AccountId=get_account_id(), BudgetName=identifier),
        change=_change_budget,
        changeable=("Budget",),
        tagged=False,
    ),
}
