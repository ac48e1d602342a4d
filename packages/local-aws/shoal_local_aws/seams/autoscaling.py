"""Auto Scaling: groups, and the formats of requests and responses."""

from collections.abc import Callable
from typing import Any

from shoal_local_aws.seams.lookup import Answer, MinistackModule, Operations, PatchPoint, Record, Table

_autoscaling = MinistackModule("services.autoscaling")

operations = Operations(_autoscaling, "_ACTION_MAP")

groups: Table = _autoscaling.take("_asgs")
"""Auto scaling groups by name."""

fill: PatchPoint[Callable[[Record], None]] = PatchPoint("_reconcile_instances", _autoscaling)
"""Starts or terminates instances until a group has its desired capacity."""

answer: Callable[[int, str, str], Answer] = _autoscaling.take("_xml")
"""Returns a response. Arguments: status, name of the root element, content of the element."""

error: Callable[[str, str], Answer] = _autoscaling.take("_error")
"""Returns an error response. Arguments: error code, message."""

to_xml: Callable[[Any], str] = _autoscaling.take("_member_xml")
"""Returns the XML of a record or a list of records."""

list_parameter: Callable[[Record, str], list[str]] = _autoscaling.take("_parse_member_list")
"""Returns the values of a list parameter. Arguments: the request's parameters, name of the list parameter."""

nested_parameters: Callable[[Record, str], Record] = _autoscaling.take("_parse_nested")
"""Returns the nested values of a parameter. Arguments: the request's parameters, name of the parameter."""
