"""Systems Manager: parameters."""

from collections.abc import Callable
from typing import Any

from shoal_local_aws.seams.lookup import MinistackModule, Record, Seam, Table

_ssm = MinistackModule("services.ssm")

parameters: Table = _ssm.take("_parameters")
"""The parameters that somebody stored, by their names."""

value: Seam[Callable[..., Any]] = Seam("resolve_parameter_value", _ssm)
"""The value of a parameter that a service reads for a template: its name or ARN, and more."""

public_parameter: Seam[Callable[[str], Record | None]] = Seam("_public_parameter", _ssm)
"""A parameter that AWS itself holds, by its name."""
