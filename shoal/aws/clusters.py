"""State of an EMR cluster, even if EMR no longer knows the cluster."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_emr.client import EMRClient
    from mypy_boto3_emr.type_defs import ClusterStatusTypeDef

ENDED = ("TERMINATING", "TERMINATED", "TERMINATED_WITH_ERRORS")
"""States in which a cluster executes no more steps."""


def status_of(emr: "EMRClient", cluster: str) -> "ClusterStatusTypeDef":
    """Return a cluster's state and the reason for its last change.

    EMR forgets a cluster two months after its termination. For a forgotten cluster, return the state TERMINATED.
    """
    try:
        return emr.describe_cluster(ClusterId=cluster)["Cluster"]["Status"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvalidRequestException":
            raise
        return {"State": "TERMINATED"}
