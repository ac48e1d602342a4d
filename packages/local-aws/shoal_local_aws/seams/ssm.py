"""Systems Manager: parameters."""

from collections.abc import Callable
from typing import Any

from shoal_local_aws.seams.lookup import MinistackModule, PatchPoint, Record, Table

_ssm = MinistackModule("services.ssm")

parameters: Table = _ssm.take("_parameters")
"""Stored parameters, by name."""

value: PatchPoint[Callable[..., Any]] = PatchPoint("resolve_parameter_value", _ssm)
"""Returns the value of a parameter that a service reads for a template. Arguments: name or ARN, and more."""

public_parameter: PatchPoint[Callable[[str], Record | None]] = PatchPoint("_public_parameter", _ssm)
"""Returns a public parameter of AWS by its name."""
