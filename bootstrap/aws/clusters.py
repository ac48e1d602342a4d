"""State of an EMR cluster, including one that EMR no longer knows."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_emr.client import EMRClient
    from mypy_boto3_emr.type_defs import ClusterStatusTypeDef

ENDED = ("TERMINATING", "TERMINATED", "TERMINATED_WITH_ERRORS")
"""States in which a cluster does no more work."""


def status_of(emr: "EMRClient", cluster: str) -> "ClusterStatusTypeDef":
    """Return a cluster's state and its reason.

    EMR forgets a cluster after two months; its state is then TERMINATED.
    """
    try:
        return emr.describe_cluster(ClusterId=cluster)["Cluster"]["Status"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvalidRequestException":
            raise
        return {"State": "TERMINATED"}
