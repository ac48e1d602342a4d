"""Rules on what is there already: the stack of that name, the data bucket, the EMR release, the CDK's own stack.

Easy to get wrong: a deployment that is there is no fault. Only another owner's or another topology's is.
"""

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from bootstrap.aws.stacks import describe, name_conflict
from bootstrap.lifecycle.rules import OnlineRule, PreflightContext
from infra import topology

_CDK_VERSION = "/cdk-bootstrap/hnb659fds/version"
"""Where the CDK's bootstrap stack says that it is there; the middle part is the CDK's default qualifier."""


class NameTaken(OnlineRule):
    """The deployment is another's."""

    level = "error"
    about = "Whether the deployment's name is free"

    def check(self, context: PreflightContext) -> Iterator[str]:
        """Whose it is."""
        stack = describe(context.account.client("cloudformation"), topology.stack_name(context.deployment))
        sentence = name_conflict(
            stack, deployment=context.deployment, owner=context.owner, made_from=context.topology.name
        )
        if sentence:
            yield sentence


class OldAccount(OnlineRule):
    """The guard of an earlier deployment of this name has left its account behind."""

    level = "warning"
    about = "Whether an earlier deployment has left something"

    def check(self, context: PreflightContext) -> Iterator[str]:
        """The parameters that are there though the stack is not."""
        if describe(context.account.client("cloudformation"), topology.stack_name(context.deployment)):
            return
        names = [topology.extension_parameter(context.deployment), topology.guard_parameter(context.deployment)]
        found = context.account.client("ssm").get_parameters(Names=names)["Parameters"]
        if found:
            yield (
                f"an earlier deployment '{context.deployment}' has left {' and '.join(each['Name'] for each in found)}; "
                f"the guard would continue from there. Remove them first: shoal destroy {context.deployment}"
            )


class NoSuchRelease(OnlineRule):
    """The region does not have the EMR release."""

    level = "error"
    about = "Whether the region has the EMR release"

    def check(self, context: PreflightContext) -> Iterator[str]:
        """The newest one that it has."""
        cluster = context.topology.preprocessing
        if cluster is None:
            return
        labels = list(context.account.items("emr", "list_release_labels", "ReleaseLabels"))
        if cluster.release not in labels:
            sevens = [label for label in labels if label.startswith("emr-7.")]
            newest = max(sevens, key=lambda label: [int(part) for part in label[4:].split(".")], default=None)
            hint = f"write {newest}" if newest else "choose another region"
            yield f"preprocessing, release: {context.topology.region} has no {cluster.release}; {hint}."


class BucketUnusable(OnlineRule):
    """The existing data bucket is not there, another account's, or in another region."""

    level = "error"
    about = "Whether the existing data bucket can be used"

    def check(self, context: PreflightContext) -> Iterator[str]:
        """What is wrong with it."""
        bucket, region = context.topology.data.bucket, context.topology.region
        if bucket is None:
            return
        s3 = context.account.client("s3")
        try:
            there = s3.head_bucket(Bucket=bucket).get("BucketRegion") or region
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in ("404", "NoSuchBucket"):
                yield (
                    f"data, bucket: there is no bucket '{bucket}'; make it: aws s3 mb s3://{bucket} --region {region}"
                )
            elif code in ("403", "AccessDenied"):
                yield f"data, bucket: '{bucket}' is not your account's, or you may not use it; write one of your own."
            elif code in ("301", "PermanentRedirect"):
                yield _elsewhere(bucket, error.response["ResponseMetadata"]["HTTPHeaders"], region)
            else:
                raise
            return
        if there != region:
            yield _elsewhere(bucket, {"x-amz-bucket-region": there}, region)


class NotPrepared(OnlineRule):
    """The CDK has no place for assets and no roles in this account and region."""

    level = "warning"
    about = "Whether the account is prepared for the CDK"

    def check(self, context: PreflightContext) -> Iterator[str]:
        """That `shoal deploy` prepares it."""
        if not is_bootstrapped(context.account.client("ssm")):
            yield (
                f"the account is not yet prepared for the CDK in {context.topology.region}; `shoal deploy` does that "
                "first (`cdk bootstrap`: the stack CDKToolkit, a bucket and roles, which stay)."
            )


def is_bootstrapped(ssm: Any) -> bool:
    """Whether `cdk bootstrap` was done where this client of SSM asks."""
    return bool(ssm.get_parameters(Names=[_CDK_VERSION])["Parameters"])


def _elsewhere(bucket: str, headers: dict[str, str], region: str) -> str:
    there = headers.get("x-amz-bucket-region", "another region")
    return (
        f"data, bucket: '{bucket}' is in {there}, and the deployment in {region}; every byte would be paid for twice, "
        f"so write `region: {there}`, or a bucket of {region}."
    )
