"""Lists the releases of EMR from which clusters can be started.

The list is from the release guide of Amazon EMR. EMR still starts releases whose support has ended.
"""

from shoal_local_aws.service import Record, RefusedError

_PATCHED = {"emr-6.1": 1, "emr-6.2": 1, "emr-6.3": 1, "emr-6.4": 0, "emr-6.10": 1, "emr-6.11": 1, "emr-5.36": 2}
_MINOR = [("emr-7", 13), ("emr-6", 15), ("emr-5", 36)]
LABELS = tuple(
    f"{major}.{minor}.{patch}"
    for major, newest in _MINOR
    for minor in range(newest, -1, -1)
    for patch in range(_PATCHED.get(f"{major}.{minor}", 0), -1, -1)
)

_HADOOP = {"emr-7": "3.4.1", "emr-6": "3.3.6", "emr-5": "2.10.1"}
"""The version of Hadoop in the newest release of each series."""


def applications(label: str, asked: list[Record]) -> list[Record]:
    """The applications of a cluster, of which Hadoop is always one, with its version."""
    version = _HADOOP.get(label.partition(".")[0], "")
    others = [each for each in asked if each.get("Name") != "Hadoop"]
    return [{"Name": "Hadoop", "Version": version}, *others]


def require(label: str) -> None:
    """Raise RefusedError when there is no such release."""
    if label not in LABELS:
        raise RefusedError("ValidationException", f"The supplied release label is invalid: {label}.")
