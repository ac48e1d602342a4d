"""Determines the owner of a deployment and whether AWS is emulated, for the CDK app and the command line.

Both must determine the same owner, because Shoal refuses updates by another owner.
"""

import getpass
import ipaddress
from urllib.parse import urlsplit

from infra.topology import Topology, owner_tag


def owner_of(topology: Topology, given: str | None) -> str:
    """Return the owner as a tag value: the given owner, or the topology's, or the current user."""
    return owner_tag(given or topology.owner or _user())


def emulated(endpoint: str | None) -> bool:
    """Return whether the endpoint is on this machine, which means that AWS is emulated."""
    try:
        host = urlsplit(endpoint or "").hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # not a URL, or a host name
        return False


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the user of a container may have no name
        return ""
