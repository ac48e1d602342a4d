"""Creates Lambda functions and log groups.

Do not use AWS's managed policy for Lambda functions, because it allows creating log groups. The last log lines of a
function would create its log group again after CloudFormation has deleted it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from aws_cdk import Duration, IgnoreMode, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from shoal_guard.grants import accept, allow

_HANDLERS = Path(__file__).with_name("handlers")


def function(
    scope: Construct,
    *,
    description: str,
    files: Sequence[str],
    handler: str,
    timeout: Duration,
    environment: Mapping[str, str] | None = None,
) -> tuple[lambda_.Function, iam.Role]:
    """Create a function from these files of `handlers/`, and its role. The role only allows writing the function's
    log."""
    log = log_group(scope, "Log")
    role = iam.Role(scope, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    allow(role, ["logs:CreateLogStream", "logs:PutLogEvents"], [log.log_group_arn])
    made = lambda_.Function(
        scope,
        "Function",
        description=description,
        runtime=lambda_.Runtime.PYTHON_3_14,
        handler=handler,
        code=lambda_.Code.from_asset(
            str(_HANDLERS), exclude=["*", *(f"!{name}" for name in files)], ignore_mode=IgnoreMode.GIT
        ),
        timeout=timeout,
        memory_size=256,
        role=role,
        log_group=log,
        environment=environment,
    )
    accept(
        made,
        "CKV_AWS_115",
        "Reserved concurrency counts against the account's limit, and a new account has no concurrency to spare.",
    )
    accept(
        made,
        "CKV_AWS_116",
        "Nobody would read dead letters, because CloudFormation waits for the answer and the guard runs again anyway.",
    )
    accept(made, "CKV_AWS_117", "It only calls AWS's services. In a VPC it would need an endpoint for each of them.")
    accept(made, "CKV_AWS_173", "The environment contains no secrets, and AWS encrypts it with AWS's own key.")
    return made, role


def log_group(scope: Construct, construct_id: str) -> logs.LogGroup:
    """Create a log group that is deleted with the stack and keeps its lines for a week."""
    group = logs.LogGroup(
        scope, construct_id, retention=logs.RetentionDays.ONE_WEEK, removal_policy=RemovalPolicy.DESTROY
    )
    accept(
        group, "CKV_AWS_158", "CloudWatch encrypts the group. A customer managed key would outlive the stack by a week."
    )
    return group
