"""Systems Manager: parameters."""

from collections.abc import Callable

from embedded.seams.lookup import MinistackModule, Record, Seam, Table

_ssm = MinistackModule("services.ssm")

parameters: Table = _ssm.take("_parameters")
"""The parameters that somebody stored, by their names."""

public_parameter: Seam[Callable[[str], Record | None]] = Seam("_public_parameter", _ssm)
"""A parameter that AWS itself holds, by its name."""
