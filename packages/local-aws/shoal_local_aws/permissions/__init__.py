"""Identities and permissions of the callers of the emulated AWS."""
