"""Auto Scaling: groups, and the formats of requests and responses."""

from collections.abc import Callable
from typing import Any

from shoal_local_aws.seams.lookup import Answer, MinistackModule, Operations, PatchPoint, Record, Table

_autoscaling = MinistackModule("services.autoscaling")

operations = Operations(_autoscaling, "_ACTION_MAP")

groups: Table = _autoscaling.take("_asgs")
"""Groups by name."""

fill: PatchPoint[Callable[[Record], None]] = PatchPoint("_reconcile_instances", _autoscaling)
"""Brings a group to its desired capacity."""

answer: Callable[[int, str, str], Answer] = _autoscaling.take("_xml")
"""Returns a response from its status, the name of its element, and the element's content."""

error: Callable[[str, str], Answer] = _autoscaling.take("_error")
"""Returns an error response from its code and message."""

to_xml: Callable[[Any], str] = _autoscaling.take("_member_xml")
"""Returns the XML of a record or a list of records."""

list_parameter: Callable[[Record, str], list[str]] = _autoscaling.take("_parse_member_list")
"""Returns the values of a request's list parameter."""

nested_parameters: Callable[[Record, str], Record] = _autoscaling.take("_parse_nested")
"""Returns the nested values of a request's parameter."""
