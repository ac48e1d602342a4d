"""Hosts, which are the user's own machines: the hosts file, SSH connections, and the shared folder."""
