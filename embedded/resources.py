"""All resource types that are added to ministack's CloudFormation."""

from collections.abc import Mapping

from embedded import ec2_types, emr_types, other_types
from embedded.resource_type import ResourceType

TYPES: Mapping[str, ResourceType] = {**ec2_types.TYPES, **emr_types.TYPES, **other_types.TYPES}
