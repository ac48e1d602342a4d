"""The policy of whoever uses Shoal allows what the commands ask AWS for, and changes nothing that is not Shoal's."""

import re
from collections.abc import Mapping, Sequence

from embedded.permissions.record import Check
from infra import policies
from tests.infra.handled import statements
from tests.infra.replay import is_allowed, unneeded
from tools.fidelity.calls import find_calls
from tools.fidelity.document import read

PRINCIPAL = "arn:aws:iam::000000000000:user/person"
POLICY = [statements(policies.document(policies.USER))]
PLACE = "us-east-1:000000000000"
GROUP = f"arn:aws:autoscaling:{PLACE}:autoScalingGroup:1:autoScalingGroupName"
OWN: Mapping[str, Sequence[str]] = {
    "autoscaling:": [f"{GROUP}/Shoal-a-TrainingfastASG-X"],
    "budgets:": ["arn:aws:budgets::000000000000:budget/Shoal-a.us-east-1"],
    "cloudformation:": [f"arn:aws:cloudformation:{PLACE}:stack/Shoal-a/1"],
    "cloudwatch:DeleteAlarms": [f"arn:aws:cloudwatch:{PLACE}:alarm:Shoal-a-X"],
    "cloudwatch:DeleteDashboards": ["arn:aws:cloudwatch::000000000000:dashboard/Shoal-a-X"],
    "dynamodb:": [f"arn:aws:dynamodb:{PLACE}:table/Shoal-a-X"],
    "events:": [f"arn:aws:events:{PLACE}:rule/Shoal-a-X"],
    "iam:": ["arn:aws:iam::000000000000:role/Shoal-a-X"],
    "iam:DeleteInstanceProfile": ["arn:aws:iam::000000000000:instance-profile/Shoal-a-X"],
    "iam:DeletePolicy": ["arn:aws:iam::000000000000:policy/Shoal-a-X"],
    "lambda:": [f"arn:aws:lambda:{PLACE}:function:Shoal-a-X"],
    "lambda:DeleteLayerVersion": [f"arn:aws:lambda:{PLACE}:layer:Shoal-a-X:1"],
    "logs:": [f"arn:aws:logs:{PLACE}:log-group:{name}:*" for name in ("/aws/lambda/Shoal-a-X", "Shoal-a-X")],
    "sagemaker:": [f"arn:aws:sagemaker:{PLACE}:training-job/shoal-a-261127154000"],
    "s3:": ["arn:aws:s3:::shoal-a-x", "arn:aws:s3:::shoal-a-x/runs/1"],
    "scheduler:DeleteSchedule": [f"arn:aws:scheduler:{PLACE}:schedule/default/Shoal-a-X"],
    "scheduler:DeleteScheduleGroup": [f"arn:aws:scheduler:{PLACE}:schedule-group/Shoal-a-X"],
    "secretsmanager:": [f"arn:aws:secretsmanager:{PLACE}:secret:Shoal-a-X"],
    "sns:": [f"arn:aws:sns:{PLACE}:Shoal-a-X"],
    "sqs:": [f"arn:aws:sqs:{PLACE}:Shoal-a-X"],
    "ssm:": [f"arn:aws:ssm:{PLACE}:parameter/shoal/a/guard"],
    "ssm:GetParametersByPath": [f"arn:aws:ssm:{PLACE}:parameter/cdk-bootstrap/"],
    "sts:": ["arn:aws:iam::000000000000:role/cdk-hnb659fds-deploy-role-000000000000-us-east-1"],
}
"""What an action of a service, or one action, is asked for; by the longest name that begins the action."""
BESIDE = (
    Check(PRINCIPAL, "cloudformation:DescribeStacks", f"arn:aws:cloudformation:{PLACE}:stack/CDKToolkit/1", "allowed"),
    Check(PRINCIPAL, "s3:DeleteObject", "arn:aws:s3:::shoal-a-x/runs/1", "allowed"),
    Check(PRINCIPAL, "s3:DeleteObjectVersion", "arn:aws:s3:::shoal-a-x/runs/1", "allowed"),
    Check(PRINCIPAL, "s3:ListBucketMultipartUploads", "arn:aws:s3:::shoal-a-x", "allowed"),
    Check(PRINCIPAL, "sagemaker:AddTags", OWN["sagemaker:"][0], "allowed"),
    Check(PRINCIPAL, "sts:AssumeRole", OWN["sts:"][0], "allowed"),
)
"""What the CDK asks for, what emptying a bucket does, whose operations no client's method names, and what is asked for
beside a job with tags."""
PREPARING = {
    f"iam {operation}"
    for operation in (
        *("AttachUserPolicy", "CreateAccessKey", "CreatePolicy", "CreatePolicyVersion", "CreateUser"),
        *("DeletePolicyVersion", "GetPolicyVersion", "ListPolicyVersions"),
    )
}
"""What only an administrator asks for, before `cdk bootstrap`, and the demo for its user."""
SWEEPING = {
    *("dynamodb DescribeTable", "ec2 DeleteSnapshot", "ec2 DeregisterImage"),
    *("ecr DeleteRepository", "ecr DescribeImages", "ecr DescribeRepositories", "ecr ListTagsForResource"),
    *("elbv2 DeleteLoadBalancer", "elbv2 DescribeLoadBalancers", "elbv2 DescribeTags"),
    *(f"rds Delete{kind}" for kind in ("DBCluster", "DBClusterSnapshot", "DBInstance", "DBSnapshot")),
    *(f"rds Describe{kind}s" for kind in ("DBCluster", "DBClusterSnapshot", "DBInstance", "DBSnapshot")),
}
"""What `shoal sweep` alone asks for, of others' stacks: whoever sweeps these has permissions of their own."""
READ = ("Describe", "Get", "List", "View")
ANYWHERE = {
    *("ec2:DeleteNetworkInterface", "ec2:RunInstances"),
    *("elasticmapreduce:DeleteSecurityConfiguration", "sns:Unsubscribe"),
}
"""What IAM cannot limit."""


def wanted() -> set[str]:
    """The actions of all operations that the commands ask for; everybody may ask who they are."""
    operations = read()["operations"]
    actions = {
        action
        for (service, operation), rooms in find_calls().items()
        if not rooms <= {"infra", "jobs", "trainer"}
        if (name := f"{service} {operation}") not in PREPARING | SWEEPING
        for action in operations[name] or [f"{service}:{operation}"]
    }
    return actions - {"sts:GetCallerIdentity"}


def requests(action: str, *, own: bool = True) -> list[Check]:
    """The action asked for on what is a deployment's, or is not."""
    name = max((each for each in OWN if action.startswith(each)), key=len, default="")
    tags = {f"{prefix}:ResourceTag/shoal:deployment": "a" for prefix in ("aws", action.partition(":")[0], "ssm") if own}
    tags |= {"iam:PassedToService": "sagemaker.amazonaws.com"} if action == "iam:PassRole" else {}
    found = list(OWN.get(name, ["*"]))
    if action.partition(":")[2].startswith(READ):
        found.append("*")
    if not own:
        found = [re.sub("shoal|Shoal|cdk-", "other", each) for each in found if each != "*"] or ["*"]
    return [Check(PRINCIPAL, action, each, "allowed", context=tags) for each in found]


def test_the_user_may_do_what_commands_ask_for_and_each_grant_is_asked_for_or_explained() -> None:
    asked = [*BESIDE]
    for action in sorted(wanted()):
        allowed = [each for each in requests(action) if is_allowed(each, POLICY)]
        assert allowed, f"{policies.USER} does not allow {action}"
        asked += allowed
    found = {(grant.statement["sid"], grant.value) for grant in unneeded(asked, POLICY)}
    assert found == {(sid, grant) for sid, grants in policies.reasons(policies.USER).items() for grant in grants}


def test_the_user_may_change_nothing_that_is_not_a_deployments() -> None:
    changing = [action for action in wanted() if not action.partition(":")[2].startswith(READ)]
    assert len(changing) > 50
    may = {action for action in changing if any(is_allowed(each, POLICY) for each in requests(action, own=False))}
    assert may == ANYWHERE
    escalating = ("iam:CreateRole", "iam:PutRolePolicy", "iam:PassRole", "iam:CreatePolicyVersion", "sts:AssumeRole")
    for action in escalating:
        named = ("role/Shoal-a-X", "policy/ShoalUser", "role/admin")
        for resource in (f"arn:aws:iam::000000000000:{each}" for each in named):
            assert not is_allowed(Check(PRINCIPAL, action, resource, "allowed"), POLICY)
