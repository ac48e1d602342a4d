"""Ownership of resources: whether a resource belongs to a deployment, and whether a bucket must outlive its deployment.

Do not recognize names by a prefix, because `Shoal-a-` is also a prefix of the names of the deployment `a-b`.
"""

from collections.abc import Sequence

from botocore.exceptions import BotoCoreError, ClientError
from shoal_guard.sweep.account import Account, ResourceRecord
from shoal_guard.sweep.owner import Owner, keep_tag, keep_unknown

from bootstrap.aws import fetched
from infra import policies, topology

_TOOLKIT_PREFIX = f"cdk-{policies.QUALIFIER}-"


class Ownership(Owner):
    """Decides for resources of an account whether they belong to one deployment."""

    def __init__(self, account: Account, deployment: str) -> None:
        stack = topology.stack_name(deployment)
        super().__init__(account, stack=stack, tag=topology.TAG_DEPLOYMENT, value=deployment)
        self.deployment = deployment

    def why_kept(self, bucket: str) -> tuple[str, Sequence[str]]:
        """Return the result of the function `why_kept`."""
        return why_kept(self.account, bucket)

    def may_empty(self, bucket: str) -> bool:
        """Return whether Shoal is allowed to empty a bucket. False if the topology keeps the data; AWS then deletes the
        bucket only if it is already empty."""
        return keep_tag(self.account, bucket) != "true"

    def may_own(self, record: ResourceRecord) -> bool:
        """Return whether a record might belong to the deployment, so that a call to read its tags is worthwhile.

        All names that CloudFormation generates contain `shoal`; the tagging service finds the other resources. Names of
        the CDK toolkit also contain `shoal`. They are excluded, because the caller might not be allowed to read the
        toolkit's tags.
        """
        texts = (value.lower() for value in record.values() if isinstance(value, str))
        return any("shoal" in text.replace(_TOOLKIT_PREFIX, "") for text in texts)

    def has_name(self, cloudformation: str, name: str) -> bool:
        """Return whether the name is proof of ownership: the name of a parameter below the deployment's path, or the
        name of the deployment's budget."""
        if cloudformation == "AWS::Budgets::Budget":
            return name == topology.budget_name(self.deployment, self.account.region)
        return cloudformation == "AWS::SSM::Parameter" and name.startswith(f"/shoal/{self.deployment}/")


def why_kept(account: Account, bucket: str) -> tuple[str, list[str]]:
    """Return the reason why a bucket must outlive the stack, and the runs for which it is kept. Both are empty if it is
    not kept.

    Raises OwnershipUnknownError if the bucket's tag or its runs are unreadable, because such a bucket must not be
    emptied.
    """
    try:
        keep = keep_tag(account, bucket)
        if keep == "true" and not is_empty(account, bucket):
            return f"its topology keeps it; to delete it: aws s3 rb --force s3://{bucket}", []
        runs = fetched.unfetched(account.client("s3"), bucket) if keep == topology.KEEP_UNFETCHED else []
    except (BotoCoreError, ClientError) as error:
        raise keep_unknown(error) from None
    if not runs:
        return "", []
    named = f"these runs were not fetched completely: {', '.join(runs)}"
    return f"{named}; `shoal fetch` copies them, and `shoal destroy --delete-runs` deletes them", runs


def is_empty(account: Account, bucket: str) -> bool:
    """Return whether a bucket contains neither objects nor older versions of objects."""
    page = account.client("s3").list_object_versions(Bucket=bucket, MaxKeys=1)
    return not page.get("Versions") and not page.get("DeleteMarkers")
