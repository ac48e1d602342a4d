"""IAM roles, instance profiles and policies.

They belong to no region, so a deployment of the same name in another region can own them.
"""

from collections.abc import Iterator, Mapping

from bootstrap.aws.account import Account, ResourceRecord
from bootstrap.aws.ownership import Ownership, fetched_tags, in_stack
from bootstrap.removal import deletion
from bootstrap.removal.deletion import delete_call
from bootstrap.removal.kinds.kind import ResourceKind, list_call

_SERVICE_ROLES = "/aws-service-role/"
_ROLE_TAGS = fetched_tags("iam", "list_role_tags", "Tags", RoleName="RoleName")


def _roles(account: Account) -> Iterator[ResourceRecord]:
    roles = account.items("iam", "list_roles", "Roles")
    return (role for role in roles if not role["Path"].startswith(_SERVICE_ROLES))


def _profile_is_owned(ownership: Ownership, record: ResourceRecord) -> bool:
    """CloudFormation does not tag profiles, but it tags their roles."""
    of_the_stack = in_stack("AWS::IAM::InstanceProfile", "InstanceProfileName")
    return of_the_stack(ownership, record) or any(_ROLE_TAGS(ownership, role) for role in record["Roles"])


IDENTITIES: Mapping[str, ResourceKind] = {
    "iam instance profile": ResourceKind(
        listing=list_call("iam", "list_instance_profiles", "InstanceProfiles"),
        identifier="InstanceProfileName",
        owned=_profile_is_owned,
        delete=deletion.instance_profile,
        is_global=True,
        arn="iam:instance-profile/(?:.+/)?([^/]+)",
        cloudformation="AWS::IAM::InstanceProfile",
    ),
    "iam role": ResourceKind(
        listing=_roles,
        identifier="RoleName",
        owned=_ROLE_TAGS,
        delete=deletion.role,
        is_global=True,
        arn="iam:role/(?:.+/)?([^/]+)",
        cloudformation="AWS::IAM::Role",
    ),
    "iam policy": ResourceKind(
        listing=list_call("iam", "list_policies", "Policies", Scope="Local"),
        identifier="Arn",
        owned=fetched_tags("iam", "list_policy_tags", "Tags", PolicyArn="Arn"),
        delete=delete_call("iam", "delete_policy", PolicyArn="id"),
        is_global=True,
        arn="iam:policy/.+",
        cloudformation="AWS::IAM::ManagedPolicy",
    ),
}
