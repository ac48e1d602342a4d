"""Those of ministack's resource types that are changed to match AWS."""

import json


def test_a_log_group_keeps_a_generated_name_with_the_stacks_prefix(stacks, client):
    def group(days):
        return {"Log": {"Type": "AWS::Logs::LogGroup", "Properties": {"RetentionInDays": days}}}

    assert stacks.create("logging", group(7)) == "CREATE_COMPLETE"
    name = stacks.physical("logging", "Log")
    assert name.startswith("logging-Log-")
    assert stacks.update("logging", group(30)) == "UPDATE_COMPLETE"
    (found,) = client("logs").describe_log_groups(logGroupNamePrefix="logging-")["logGroups"]
    assert (found["logGroupName"], found["retentionInDays"]) == (name, 30)
    assert stacks.delete("logging") == "DELETE_COMPLETE"


def test_a_boundary_limits_a_role_and_must_exist(stacks, client, messages):
    trust = {"Version": "2012-10-17", "Statement": []}
    role = {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust}}
    limits = [f"arn:aws:iam::000000000000:policy/{name}" for name in ("first", "second")]
    bound = [{"Role": {**role, "Properties": {**role["Properties"], "PermissionsBoundary": arn}}} for arn in limits]
    assert stacks.create("unbound", bound[0]) == "ROLLBACK_COMPLETE"
    messages.check(stacks.reason("unbound", "Role"))
    stacks.delete("unbound")
    anything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    for name in ("first", "second"):
        client("iam").create_policy(PolicyName=name, PolicyDocument=json.dumps(anything))
    assert stacks.create("bound", bound[0]) == "CREATE_COMPLETE"
    for resources, arn in ((bound[1], limits[1]), ({"Role": role}, None)):
        assert stacks.update("bound", resources) == "UPDATE_COMPLETE"
        found = client("iam").get_role(RoleName=stacks.physical("bound", "Role"))["Role"]
        assert found.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn") == arn
    stacks.delete("bound")
