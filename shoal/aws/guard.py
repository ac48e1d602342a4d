"""State of a deployment's guard: end of life, dollars spent, and the guard's prices.

Do not compute the end of life from the topology file. It depends on the settings with which the guard was deployed, the
creation time of the stack, and the added hours. The parameters are parsed by the guard's own code.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from shoal_guard.deletion import AnnouncedDeletion, announced_deletion
from shoal_guard.handlers.guard.observation import Observation
from shoal_guard.handlers.guard.parameters import MOST_HOURS as MOST_ADDED
from shoal_guard.handlers.guard.parameters import read_account, read_extension
from shoal_guard.handlers.guard.rules import GuardSettings, GuardState

from common import names
from common.errors import ShoalError
from infra import topology
from shoal.aws import stacks
from shoal.aws.account import Account
from shoal.aws.deployment import Deployment
from shoal.aws.stacks import Stack

Read = TypeVar("Read")
_QUOTED_CHARACTERS = 80


@dataclass(frozen=True, kw_only=True)
class GuardReport:
    """Settings of the guard, and the spending that its last invocation recorded."""

    created: datetime
    max_hours: float
    added_hours: float
    budget: float | None
    spent: float | None
    """Dollars spent so far; None before the guard's first invocation."""
    as_of: datetime | None
    gpu: Mapping[str, float]
    """Dollars per hour of one training node or reader with its volume, by instance type. `emr` contains the same prices
    for EMR nodes."""
    emr: Mapping[str, float]
    standing: float
    """Dollars per hour of all resources that run as long as the stack exists."""
    job: float = 0.0
    """Dollars per hour of one SageMaker training job."""
    unpriced: str = ""
    """Names of the items without a known price. Their price counts as 0."""
    announced: AnnouncedDeletion | None = None

    @property
    def ends(self) -> datetime:
        """End of life, at which the guard deletes the stack."""
        return self.created + timedelta(hours=self.max_hours + self.added_hours)


def read(account: Account, deployment: str, stack: Stack) -> GuardReport | None:
    """Return the report on a stack's guard, or None if the guard does not exist. Raises ShoalError if a parameter or
    the guard's settings are invalid."""
    function = stacks.outputs(stack).get(names.OUTPUT_GUARD)
    if function is None:
        return None
    try:
        configuration = account.client("lambda").get_function_configuration(FunctionName=function)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return None
        raise
    settings = _settings(function, configuration)
    created: datetime = stack["CreationTime"].astimezone(UTC)
    kept = _read_parameters(account, deployment, created)
    guard_parameter, extension = names.guard_parameter(deployment), names.extension_parameter(deployment)
    delete = "aws ssm delete-parameter --name"
    again = f"delete it: {delete} {guard_parameter}; the guard writes it again within five minutes"
    now = datetime.now(UTC)
    spending = _read(kept, guard_parameter, partial(read_account, now=now), GuardState(), again)
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
        announced=announced_deletion(settings, now, spending, Observation(created=created, extension=added)),
    )


def find_announcement(deployment: Deployment) -> AnnouncedDeletion | None:
    """Return the deletion that a deployment's guard has announced, or None. Also return None if Shoal cannot read the
    guard's state."""
    account = Account(deployment.session)
    try:
        stack = stacks.describe(account.client("cloudformation"), topology.stack_name(deployment.name))
        report = read(account, deployment.name, stack) if stack else None
    except (BotoCoreError, ClientError, ShoalError):
        return None
    return report.announced if report else None


def extend(account: Account, deployment: str, guard: GuardReport, hours: float) -> datetime:
    """Add hours to a deployment's life, and return the new end of life.

    Raises ShoalError if the end of life has passed, or if the total of added hours exceeds the guard's maximum.
    """
    if guard.ends <= datetime.now(UTC):
        raise ShoalError(
            f"the life of '{deployment}' ended at {guard.ends:%Y-%m-%d %H:%M} UTC, and its guard is deleting it; "
            "deploy it again after its deletion"
        )
    total = guard.added_hours + hours
    if total > MOST_ADDED:
        raise ShoalError(
            f"'{deployment}' already has {guard.added_hours:g} added hours, and its guard accepts {MOST_ADDED:g} in "
            "total; deploy it again after its deletion"
        )
    account.client("ssm").put_parameter(
        Name=names.extension_parameter(deployment), Value=f"{total:.10g}", Type="String", Overwrite=True
    )
    return guard.ends + timedelta(hours=hours)


def _read_parameters(account: Account, deployment: str, created: datetime) -> dict[str, str]:
    """Return the values of the guard's SSM parameters by name. Parameters of an earlier stack are left out, because the
    guard ignores them, too."""
    wanted = [names.extension_parameter(deployment), names.guard_parameter(deployment)]
    parameters = account.client("ssm").get_parameters(Names=wanted)["Parameters"]
    return {each["Name"]: each["Value"] for each in parameters if each["LastModifiedDate"] >= created}


def _settings(function: str, found: Mapping[str, Any]) -> GuardSettings:
    try:
        return GuardSettings(**json.loads(found["Environment"]["Variables"]["SETTINGS"]))
    except (KeyError, TypeError, ValueError):
        raise ShoalError(
            f"Shoal cannot read the settings of the guard {function} (its environment variable SETTINGS); deploy again "
            "to restore them"
        ) from None


def _read(kept: Mapping[str, str], name: str, read: Callable[[str], Read], otherwise: Read, again: str) -> Read:
    """Return the parsed value of a parameter, or `otherwise` if the parameter is missing.

    Raises ShoalError if the value is invalid. `again` is the end of the message, which says what to do.
    """
    try:
        return read(kept[name]) if name in kept else otherwise
    except ValueError as error:
        raise ShoalError(
            f"the parameter {name} {error}: its value is {kept[name][:_QUOTED_CHARACTERS]!r}; {again}"
        ) from None
