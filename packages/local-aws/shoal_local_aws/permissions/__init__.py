"""Identities and permissions of the callers of emulated services."""
