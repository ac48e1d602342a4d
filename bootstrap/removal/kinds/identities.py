"""Roles and what names them.

Easy to get wrong: they belong to no region, so a deployment of the same name in another one may be their owner.
"""

from collections.abc import Iterator, Mapping

from bootstrap.aws.account import Account, Record
from bootstrap.aws.ownership import Ownership, asked, recorded
from bootstrap.removal import deletion
from bootstrap.removal.deletion import by
from bootstrap.removal.kinds.kind import ResourceKind, lists

_SERVICE_ROLES = "/aws-service-role/"
_ROLE_TAGS = asked("iam", "list_role_tags", "Tags", RoleName="RoleName")


def _roles(account: Account) -> Iterator[Record]:
    roles = account.items("iam", "list_roles", "Roles")
    return (role for role in roles if not role["Path"].startswith(_SERVICE_ROLES))


def _profile_is_owned(claim: Ownership, record: Record) -> bool:
    """Profiles get no tags from CloudFormation; their roles do."""
    of_the_stack = recorded("AWS::IAM::InstanceProfile", "InstanceProfileName")
    return of_the_stack(claim, record) or any(_ROLE_TAGS(claim, role) for role in record["Roles"])


IDENTITIES: Mapping[str, ResourceKind] = {
    "iam instance profile": ResourceKind(
        listing=lists("iam", "list_instance_profiles", "InstanceProfiles"),
        identifier="InstanceProfileName",
        owned=_profile_is_owned,
        delete=deletion.instance_profile,
        everywhere=True,
        arn="iam:instance-profile/(?:.+/)?([^/]+)",
        cloudformation="AWS::IAM::InstanceProfile",
    ),
    "iam role": ResourceKind(
        listing=_roles,
        identifier="RoleName",
        owned=_ROLE_TAGS,
        delete=deletion.role,
        everywhere=True,
        arn="iam:role/(?:.+/)?([^/]+)",
        cloudformation="AWS::IAM::Role",
    ),
    "iam policy": ResourceKind(
        listing=lists("iam", "list_policies", "Policies", Scope="Local"),
        identifier="Arn",
        owned=asked("iam", "list_policy_tags", "Tags", PolicyArn="Arn"),
        delete=by("iam", "delete_policy", PolicyArn="id"),
        everywhere=True,
        arn="iam:policy/.+",
        cloudformation="AWS::IAM::ManagedPolicy",
    ),
}
