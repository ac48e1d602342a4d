"""What the guard of a deployment knows: when it ends, what was spent, and the prices it counts with.

The easy mistake is to ask the topology's file when a deployment ends: what counts is what the guard was deployed with,
the stack's creation, and the hours that were added since.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from bootstrap import stacks
from bootstrap.account import Account
from bootstrap.errors import ShoalError
from bootstrap.stacks import Stack
from infra import topology

MOST_HOURS = 720.0
"""So many can be added at once: a month, after which nobody remembers."""


@dataclass(frozen=True, kw_only=True)
class Guard:
    """The guard's settings, and its account as of its last round."""

    created: datetime
    max_hours: float
    added_hours: float
    budget: float | None
    spent: float | None
    """Dollars; None before its first round."""
    as_of: datetime | None
    gpu: Mapping[str, float]
    """Dollars an hour of a GPU node with its volume, by instance type; `emr` likewise."""
    emr: Mapping[str, float]
    standing: float
    """Dollars an hour of what only the end of the stack ends."""

    @property
    def ends(self) -> datetime:
        """When it deletes the stack."""
        return self.created + timedelta(hours=self.max_hours + self.added_hours)


def read(account: Account, deployment: str, stack: Stack) -> Guard | None:
    """The guard of a stack; None where the stack has none yet, or none any more."""
    function = stacks.outputs(stack).get(topology.OUTPUT_GUARD)
    if function is None:
        return None
    try:
        found = account.client("lambda").get_function_configuration(FunctionName=function)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return None
        raise
    settings: dict[str, Any] = json.loads(found["Environment"]["Variables"]["SETTINGS"])
    created: datetime = stack["CreationTime"].astimezone(UTC)
    kept = _kept(account, deployment, created)
    book = json.loads(kept.get(topology.guard_parameter(deployment), "{}"))
    as_of = book.get("as_of")
    return Guard(
        created=created,
        max_hours=settings["max_hours"],
        added_hours=float(kept.get(topology.extension_parameter(deployment), "0")),
        budget=settings.get("budget"),
        spent=float(book["spent"]) if as_of else None,
        as_of=datetime.fromisoformat(as_of) if as_of else None,
        gpu=settings["gpu"],
        emr=settings["emr"],
        standing=settings["standing"],
    )


def extend(account: Account, deployment: str, guard: Guard, hours: float) -> datetime:
    """Add hours to the deployment's life; returns its new end. Raises ShoalError when the end has come already."""
    if guard.ends <= datetime.now(UTC):
        raise ShoalError(
            f"the end of '{deployment}' was {guard.ends:%Y-%m-%d %H:%M} UTC, and its guard is deleting it; deploy it "
            "again when it is gone"
        )
    account.client("ssm").put_parameter(
        Name=topology.extension_parameter(deployment),
        Value=f"{guard.added_hours + hours:g}",
        Type="String",
        Overwrite=True,
    )
    return later(guard, hours)


def later(guard: Guard, hours: float) -> datetime:
    """The end with so many hours more."""
    return guard.ends + timedelta(hours=hours)


def _kept(account: Account, deployment: str, created: datetime) -> dict[str, str]:
    """Its parameters; what is older than the stack was another one's, and does not count for the guard either."""
    names = [topology.extension_parameter(deployment), topology.guard_parameter(deployment)]
    found = account.client("ssm").get_parameters(Names=names)["Parameters"]
    return {each["Name"]: each["Value"] for each in found if each["LastModifiedDate"] >= created}
