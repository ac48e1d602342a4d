"""`shoal_local_aws.testing` by its former name."""

from shoal_local_aws.testing import local_aws, shoal_aws

__all__ = ["local_aws", "shoal_aws"]
