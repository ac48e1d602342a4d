"""Rules for every stack, whatever its topology. Each returns the resources of a template that break it.

The one thing that is easy to get wrong: a rule must not pass because it found nothing to look at. What a stack always
has is asked for by type, and its absence is a fault too. Encryption and the metadata service are left to `make lint`.
"""

import json
import re
from typing import Any

Resources = dict[str, dict[str, Any]]

# CloudFormation gives these no tags.
_UNTAGGED = {
    *("AWS::EC2::Route", "AWS::EC2::SecurityGroupEgress", "AWS::EC2::SecurityGroupIngress"),
    *("AWS::EC2::SubnetRouteTableAssociation", "AWS::EC2::VPCGatewayAttachment", "AWS::EFS::MountTarget"),
    *("AWS::EMR::SecurityConfiguration", "AWS::IAM::InstanceProfile", "AWS::IAM::Policy", "AWS::Lambda::Permission"),
    *("AWS::S3::BucketPolicy", "AWS::SNS::Subscription", "AWS::SNS::TopicPolicy", "Custom::Cleanup"),
}
_BY_THE_HOUR = {
    "AWS::AutoScaling::AutoScalingGroup",
    "AWS::EC2::EIP",
    "AWS::EC2::NatGateway",
    "AWS::EFS::FileSystem",
    "AWS::EMR::Cluster",
}
_READING = re.compile(r"[a-z0-9-]+:(Describe|Get|List)[A-Za-z]+")
MANAGED_POLICIES = {"AmazonSSMManagedInstanceCore", "service-role/AmazonEMRServicePolicy_v2"}


def broken(resources, tags):
    rules = (open_doors, too_much_allowed, unguarded, left_behind, clusters_out_of_reach, networks_open_to_emr)
    faults = [fault for rule in (*rules, roles_without_source_account) for fault in rule(resources)]
    return [*faults, *untagged(resources, tags)]


def open_doors(resources):
    """Return rules that allow connections from addresses, and resources with a public address."""
    found = []
    for name, each in of_type(resources, "AWS::EC2::SecurityGroup").items():
        found += [f"{name} lets {rule} in" for rule in each.get("SecurityGroupIngress", ())]
        if not each.get("SecurityGroupEgress"):  # rules of other resources come later than the group
            found.append(f"{name} gets EC2's rule, which lets everything out")
    for name, each in of_type(resources, "AWS::EC2::SecurityGroupIngress").items():
        if "SourceSecurityGroupId" not in each or {"CidrIp", "CidrIpv6", "SourcePrefixListId"} & set(each):
            found.append(f"{name} lets addresses in")
    for name, each in of_type(resources, "AWS::EC2::Subnet").items():
        if each.get("MapPublicIpOnLaunch"):
            found.append(f"{name} gives public addresses")
    for name, each in of_type(resources, "AWS::EC2::LaunchTemplate").items():
        if "AssociatePublicIpAddress" in json.dumps(each):
            found.append(f"{name} gives public addresses")
    return found


def too_much_allowed(resources):
    """Policies with a wildcard in an action, or that change any resource; roles with other policies of AWS than two."""
    found = []
    for name, each in of_type(resources, "AWS::IAM::Policy").items():
        for statement in each["PolicyDocument"]["Statement"]:
            actions = as_list(statement.get("Action", "*"))
            if any("*" in action for action in actions):
                found.append(f"{name} allows any of {actions}")
            changing = [action for action in actions if not _READING.fullmatch(action)]
            limited = changing == ["cloudwatch:PutMetricData"] and "cloudwatch:namespace" in json.dumps(statement)
            if "*" in as_list(statement["Resource"]) and changing and not limited:
                found.append(f"{name} allows {changing} on anything")
    for name, each in of_type(resources, "AWS::IAM::Role").items():
        arns = [policy["Fn::Join"][1][-1] for policy in each.get("ManagedPolicyArns", ())]
        managed = {arn.partition(":iam::aws:policy/")[2] for arn in arns}
        if managed - MANAGED_POLICIES or "Policies" in each:
            found.append(f"{name} has {managed or 'policies of its own'}")
        taking = [statement["Principal"] for statement in each["AssumeRolePolicyDocument"]["Statement"]]
        found += [f"{name} may be taken by {who}" for who in taking if set(who) != {"Service"}]
    return found


def untagged(resources, tags):
    """Resources that could have all of the tags and do not, and instances and volumes of launch templates."""
    return [
        f"{name} lacks the tags {dict(sorted(missing))}"
        for name, each in resources.items()
        if each["Type"] not in _UNTAGGED
        for held in _tags(each.get("Properties", {}))
        if (missing := set(tags.items()) - set(held.items()))
    ]


def unguarded(resources):
    """Resources that cost by the hour and are not created after the guard and its schedule, and deleted before."""
    parts = {**of_type(resources, "AWS::Lambda::Function"), **of_type(resources, "AWS::Events::Rule")}
    guard = {name for name in parts if name.startswith("Guard")}
    if len(guard) != 2:
        return [f"there is no guard with a clock, only {sorted(guard)}"]
    return [
        f"{name} costs by the hour without the guard"
        for name, each in resources.items()
        if each["Type"] in _BY_THE_HOUR or each.get("Properties", {}).get("VpcEndpointType") == "Interface"
        if not guard <= needs(resources, name)
    ]


def left_behind(resources):
    """Return resources that outlive the stack, except a data bucket with its policy."""
    found = []
    for name, each in resources.items():
        policies = {each.get(key, "Delete") for key in ("DeletionPolicy", "UpdateReplacePolicy")}
        data = each["Type"] in ("AWS::S3::Bucket", "AWS::S3::BucketPolicy") and name.startswith("BucketsData")
        if policies != {"Delete"} and not data:
            found.append(f"{name} outlives the stack")
    return found


def clusters_out_of_reach(resources):
    """Clusters that lack a rule that EMR requires and does not add itself, or that may start before it exists."""
    found = []
    for name, cluster in of_type(resources, "AWS::EMR::Cluster").items():
        primary, core, service = (
            next(references(cluster["Instances"][key]))
            for key in ("EmrManagedMasterSecurityGroup", "EmrManagedSlaveSecurityGroup", "ServiceAccessSecurityGroup")
        )
        before = needs(resources, name)
        for direction, port, other in (("Ingress", 9443, primary), ("Egress", 8443, primary), ("Egress", 8443, core)):
            rules = of_type(resources, f"AWS::EC2::SecurityGroup{direction}")
            if not any(rule in before and _passes(rules[rule], service, port, other) for rule in rules):
                found.append(f"{name} lacks the rule for {direction.lower()} on {port} between {service} and {other}")
    return found


def networks_open_to_emr(resources):
    """Return VPCs with the tag with which EMR may create security groups, which would block the VPC's deletion."""
    return [
        f"{name} lets EMR make security groups of its own"
        for name, each in of_type(resources, "AWS::EC2::VPC").items()
        if any(tag["Key"] == "for-use-with-amazon-emr-managed-policies" for tag in each.get("Tags", ()))
    ]


def roles_without_source_account(resources):
    """Roles that a service may assume for a resource of another account, although it sends the resource's account.

    EC2 and Lambda are not documented to send it; only users of the account can give its roles to them.
    """
    found = []
    for name, each in of_type(resources, "AWS::IAM::Role").items():
        for statement in each["AssumeRolePolicyDocument"]["Statement"]:
            said = {key for keys in statement.get("Condition", {}).values() for key in keys}
            silent = statement["Principal"].get("Service") in ("ec2.amazonaws.com", "lambda.amazonaws.com")
            if not silent and not {"aws:SourceAccount", "aws:SourceArn"} <= said:
                found.append(f"{name} does not check the source account")
    return found


# Reading a template


def of_type(resources, kind):
    """Return the properties of all resources of a type, by logical ID."""
    return {name: each.get("Properties", {}) for name, each in resources.items() if each["Type"] == kind}


def the(resources, kind, part=""):
    """Return the one resource of a type with `part` in its logical ID."""
    (found,) = ((name, each) for name, each in of_type(resources, kind).items() if part in name)
    return found


def references(value):
    """Yield the logical IDs to which a part of the template refers."""
    if isinstance(value, dict):
        if "Ref" in value:
            yield value["Ref"]
        if "Fn::GetAtt" in value:
            yield value["Fn::GetAtt"][0]
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def needs(resources, name):
    """Return the resources that are created before a resource, and deleted after it."""
    found = set()
    waiting = [name]
    while waiting:
        each = resources[waiting.pop()]
        direct = {*references(each.get("Properties", {})), *as_list(each.get("DependsOn", []))} & set(resources)
        waiting += direct - found
        found |= direct
    return found


def as_list(value):
    """Return the value as a list. CloudFormation may write a list of one value without brackets."""
    return value if isinstance(value, list) else [value]


def _passes(rule, group, port, other):
    """Return whether a rule allows TCP only on this port, from or to the other group."""
    others = rule.get("SourceSecurityGroupId") or rule.get("DestinationSecurityGroupId")
    ports = rule["IpProtocol"], rule.get("FromPort"), rule.get("ToPort")
    return (*references(rule["GroupId"]), *references(others), ports) == (group, other, ("tcp", port, port))


def _tags(properties):
    """The tags of a resource, and of each thing that a launch template makes."""
    holders = (properties, properties.get("LaunchTemplateData", {}))
    specified = [each["Tags"] for holder in holders for each in holder.get("TagSpecifications", ())]
    lists = specified or [properties.get("FileSystemTags") or properties.get("Tags", [])]
    return [{tag["Key"]: tag["Value"] for tag in tags} for tags in lists]
