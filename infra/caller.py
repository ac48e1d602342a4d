"""Finds the owner of a deployment and whether AWS is emulated, for the CDK app and the command line alike.

Both must use the same owner, because it is part of the deployment's claim: with another one an update is refused.
"""

import getpass
import ipaddress
from urllib.parse import urlsplit

from infra.topology import Topology, owner_tag


def owner_of(topology: Topology, given: str | None) -> str:
    """Who answers for a deployment, as its tag says: who is given, else whom the topology names, else the user."""
    return owner_tag(given or topology.owner or _user())


def emulated(endpoint: str | None) -> bool:
    """Whether AWS's interfaces are asked for on this machine, where no real AWS starts machines."""
    host = urlsplit(endpoint or "").hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return ""
