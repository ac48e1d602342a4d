"""Reads what a deployment's guard knows: its end, what was spent, and the prices that it uses.

Do not read the end from the topology's file: it follows from the settings that the guard was deployed with, the stack's
creation, and the added hours. The guard's parameters are read as the guard reads them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from botocore.exceptions import ClientError
from shoal_guard.handlers.guard.parameters import MOST_HOURS as MOST_ADDED
from shoal_guard.handlers.guard.parameters import read_account, read_extension
from shoal_guard.handlers.guard.rules import GuardSettings, GuardState

from bootstrap.aws import stacks
from bootstrap.aws.account import Account
from bootstrap.aws.stacks import Stack
from common.errors import ShoalError
from infra import topology

Read = TypeVar("Read")
_QUOTED_CHARACTERS = 80


@dataclass(frozen=True, kw_only=True)
class GuardReport:
    """The guard's settings, and its account after its last round."""

    created: datetime
    max_hours: float
    added_hours: float
    budget: float | None
    spent: float | None
    """Dollars; None before its first round."""
    as_of: datetime | None
    gpu: Mapping[str, float]
    """Dollars an hour of a node that trains or reads, with its volume, by instance type; `emr` likewise."""
    emr: Mapping[str, float]
    standing: float
    """Dollars an hour of what runs as long as the stack exists."""
    job: float = 0.0
    """Dollars an hour of a training job of SageMaker."""
    unpriced: str = ""
    """What of all that has no price, and counts as 0."""

    @property
    def ends(self) -> datetime:
        """When the guard deletes the stack."""
        return self.created + timedelta(hours=self.max_hours + self.added_hours)


def read(account: Account, deployment: str, stack: Stack) -> GuardReport | None:
    """The guard of a stack; None when it does not exist yet or any more. Raises ShoalError for a broken parameter."""
    function = stacks.outputs(stack).get(topology.OUTPUT_GUARD)
    if function is None:
        return None
    try:
        found = account.client("lambda").get_function_configuration(FunctionName=function)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return None
        raise
    settings = _settings(function, found)
    created: datetime = stack["CreationTime"].astimezone(UTC)
    kept = _kept(account, deployment, created)
    own, extension = topology.guard_parameter(deployment), topology.extension_parameter(deployment)
    delete = "aws ssm delete-parameter --name"
    again = f"delete it: {delete} {own}; the guard writes it again within five minutes"
    spending = _read(kept, own, partial(read_account, now=datetime.now(UTC)), GuardState(), again)
    again = (
        f"no hours count as added. Delete it, then add them again: {delete} {extension}; shoal extend {deployment} "
        "--hours H"
    )
    added = _read(kept, extension, read_extension, 0.0, again)
    return GuardReport(
        created=created,
        max_hours=settings.max_hours,
        added_hours=added,
        budget=settings.budget,
        spent=spending.spent if spending.as_of else None,
        as_of=spending.as_of,
        gpu=settings.gpu,
        emr=settings.emr,
        standing=settings.standing,
        job=settings.job,
        unpriced=settings.unpriced,
    )


def extend(account: Account, deployment: str, guard: GuardReport, hours: float) -> datetime:
    """Add hours to the deployment's life; returns its new end.

    Raises ShoalError when the end has passed, or when the sum is more than the guard accepts.
    """
    if guard.ends <= datetime.now(UTC):
        raise ShoalError(
            f"the end of '{deployment}' was {guard.ends:%Y-%m-%d %H:%M} UTC, and its guard is deleting it; deploy it "
            "again when it is gone"
        )
    total = guard.added_hours + hours
    if total > MOST_ADDED:
        raise ShoalError(
            f"{guard.added_hours:g} hours were added to '{deployment}' before, and its guard accepts {MOST_ADDED:g} in "
            "all; deploy it again when it is gone"
        )
    account.client("ssm").put_parameter(
        Name=topology.extension_parameter(deployment), Value=f"{total:.10g}", Type="String", Overwrite=True
    )
    return guard.ends + timedelta(hours=hours)


def _kept(account: Account, deployment: str, created: datetime) -> dict[str, str]:
    """The guard's parameters, without those older than the stack: an earlier stack's, which the guard ignores, too."""
    names = [topology.extension_parameter(deployment), topology.guard_parameter(deployment)]
    found = account.client("ssm").get_parameters(Names=names)["Parameters"]
    return {each["Name"]: each["Value"] for each in found if each["LastModifiedDate"] >= created}


def _settings(function: str, found: Mapping[str, Any]) -> GuardSettings:
    try:
        return GuardSettings(**json.loads(found["Environment"]["Variables"]["SETTINGS"]))
    except (KeyError, TypeError, ValueError):
        raise ShoalError(
            f"the settings of the guard {function} (its environment variable SETTINGS) cannot be read; deploy again to "
            "restore them"
        ) from None


def _read(kept: Mapping[str, str], name: str, read: Callable[[str], Read], otherwise: Read, again: str) -> Read:
    """A parameter's value; `otherwise` where it is missing. Raises ShoalError where it is broken, with `again`: how to
    get a valid one."""
    try:
        return read(kept[name]) if name in kept else otherwise
    except ValueError as error:
        raise ShoalError(
            f"the parameter {name} {error}: it holds {kept[name][:_QUOTED_CHARACTERS]!r}; {again}"
        ) from None
