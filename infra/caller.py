"""Determines, for the CDK app and the command line, who owns a deployment and whether an endpoint is on this machine.

App and command line must determine the same owner, because Shoal refuses updates by a different owner.
"""

import getpass
import ipaddress
from urllib.parse import urlsplit

from infra.topology import Topology, owner_tag


def owner_of(topology: Topology, given: str | None) -> str:
    """Return the owner as a tag value: the first that exists of `given`, the topology's owner and the current user."""
    return owner_tag(given or topology.owner or _user())


def is_local(endpoint: str | None) -> bool:
    """Return whether an endpoint of AWS is on this machine. AWS is then emulated."""
    try:
        host = urlsplit(endpoint or "").hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # an invalid URL, or a host name instead of an IP address
        return False


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container, the user might have no name
        return ""
