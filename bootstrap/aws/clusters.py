"""The state of an EMR cluster, also of one that EMR has forgotten."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_emr.client import EMRClient
    from mypy_boto3_emr.type_defs import ClusterStatusTypeDef

ENDED = ("TERMINATING", "TERMINATED", "TERMINATED_WITH_ERRORS")
"""The states in which a cluster does no more work."""


def status_of(emr: "EMRClient", cluster: str) -> "ClusterStatusTypeDef":
    """A cluster's state and the reason for it. EMR forgets a cluster after two months; it is then TERMINATED."""
    try:
        return emr.describe_cluster(ClusterId=cluster)["Cluster"]["Status"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvalidRequestException":
            raise
        return {"State": "TERMINATED"}
