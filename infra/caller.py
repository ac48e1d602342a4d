"""Finds the owner of a deployment and whether AWS is emulated, for the CDK app and the command line alike.

Both must use the same owner, because an update with another owner is refused.
"""

import getpass
import ipaddress
from urllib.parse import urlsplit

from infra.topology import Topology, owner_tag


def owner_of(topology: Topology, given: str | None) -> str:
    """The owner of a deployment, as its tag has it: the given owner, else the topology's, else the current user."""
    return owner_tag(given or topology.owner or _user())


def emulated(endpoint: str | None) -> bool:
    """Whether the endpoint is on this machine, and so is not the real AWS."""
    try:
        host = urlsplit(endpoint or "").hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # no URL, or a host with a name
        return False


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the user of a container may have no name
        return ""
