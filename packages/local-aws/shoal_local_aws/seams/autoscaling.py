"""Auto Scaling: its groups, and the formats of its requests and answers."""

from collections.abc import Callable
from typing import Any

from shoal_local_aws.seams.lookup import Answer, MinistackModule, Operations, Record, Seam, Table

_autoscaling = MinistackModule("services.autoscaling")

operations = Operations(_autoscaling, "_ACTION_MAP")

groups: Table = _autoscaling.take("_asgs")
"""The groups, by their names."""

fill: Seam[Callable[[Record], None]] = Seam("_reconcile_instances", _autoscaling)
"""Brings a group to its desired capacity."""

answer: Callable[[int, str, str], Answer] = _autoscaling.take("_xml")
"""A result: its status, the name of its element, and the element's content."""

error: Callable[[str, str], Answer] = _autoscaling.take("_error")
"""An error: its code, its message."""

to_xml: Callable[[Any], str] = _autoscaling.take("_member_xml")
"""A record, or a list of records, as XML of an answer."""

list_parameter: Callable[[Record, str], list[str]] = _autoscaling.take("_parse_member_list")
"""The values of a request's list of a name."""

nested_parameters: Callable[[Record, str], Record] = _autoscaling.take("_parse_nested")
"""The nested values of a request's parameter."""
