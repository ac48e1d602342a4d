"""Every kind of resource that a deployment can leave in an account, a row a kind: how it is listed, how its owner is
found, how it is deleted, and whether it costs money.

Keep the order, because it is the order of deletion: what depends on others, or creates them again, comes before them.
"""

from collections.abc import Mapping

from bootstrap.aws.ownership import never_owned
from bootstrap.removal.kinds.foreign import FOREIGN
from bootstrap.removal.kinds.identities import IDENTITIES
from bootstrap.removal.kinds.kind import ResourceKind, is_being_deleted, list_call
from bootstrap.removal.kinds.machines import MACHINES
from bootstrap.removal.kinds.networks import NETWORKS
from bootstrap.removal.kinds.services import SERVICES
from bootstrap.removal.kinds.stores import STORES

__all__ = ["ALL_KINDS", "KINDS", "ResourceKind", "is_being_deleted"]

_STACKS: Mapping[str, ResourceKind] = {
    "cloudformation stack": ResourceKind(
        listing=list_call("cloudformation", "list_stacks", "StackSummaries"),
        identifier="StackName",
        owned=never_owned,  # `teardown` deletes it, before everything else
        delete=None,
    ),
}

KINDS: Mapping[str, ResourceKind] = {**_STACKS, **MACHINES, **STORES, **NETWORKS, **SERVICES, **IDENTITIES}

ALL_KINDS: Mapping[str, ResourceKind] = {**FOREIGN, **KINDS}
"""These, and what no deployment of Shoal has, but other stacks leave: for `shoal sweep`."""
