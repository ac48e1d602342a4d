"""Waits for events outside a test."""

from tests.local_aws.waiting import PATIENCE, until

__all__ = ["PATIENCE", "until"]
