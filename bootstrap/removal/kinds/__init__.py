"""Every kind of thing that a deployment can leave in an account, a row a kind: how it is listed, how it is told whose
it is, how it is deleted, and whether it costs money while it is there.

Easy to get wrong: the order, which is that of deleting. What holds on to others, or brings them back, comes before
them.
"""

from collections.abc import Mapping

from bootstrap.aws.ownership import never_owned
from bootstrap.removal.kinds.identities import IDENTITIES
from bootstrap.removal.kinds.kind import ResourceKind, is_being_deleted, list_call
from bootstrap.removal.kinds.machines import MACHINES
from bootstrap.removal.kinds.networks import NETWORKS
from bootstrap.removal.kinds.services import SERVICES
from bootstrap.removal.kinds.stores import STORES

__all__ = ["KINDS", "ResourceKind", "is_being_deleted"]

_STACKS: Mapping[str, ResourceKind] = {
    "cloudformation stack": ResourceKind(
        listing=list_call("cloudformation", "list_stacks", "StackSummaries"),
        identifier="StackName",
        owned=never_owned,  # it is deleted in its own way, and before all else
        delete=None,
    ),
}

KINDS: Mapping[str, ResourceKind] = {**_STACKS, **MACHINES, **STORES, **NETWORKS, **SERVICES, **IDENTITIES}
