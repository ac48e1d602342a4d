"""`Guard`, a construct that deletes its own stack at a maximum age or budget."""

import math
import re
from functools import cached_property
from typing import Any

import jsii
from aws_cdk import Annotations, Aspects, IAspect, IStableAnyProducer, Lazy, Stack, Tags
from aws_cdk import aws_ssm as ssm
from constructs import IConstruct

from shoal_guard.stack_guard import StackGuard
from shoal_guard.stack_prices import StackPrices, prices_of

_TAG = "shoal:guarded"
_MOST_HOURS = 720
_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_LONGEST_NAME = 70
"""Number of characters to which the stack's name is cut in the name of its AWS budget."""


class Guard(StackGuard):
    """A Lambda function that deletes its stack at the end of the stack's life or when the budget is spent.

    AWS runs the function every five minutes. It first sends a warning by mail. At least ten minutes later it sets auto
    scaling groups to zero instances, terminates EMR clusters, and deletes the stack. Idle EMR clusters are terminated
    earlier.

    All other resources of the stack depend on the guard and get the tag `shoal:guarded`. So the guard also deletes a
    stack that was created only in part.

    CloudFormation does not delete:

    - buckets that contain objects and do not have `auto_delete_objects`
    - resources with the removal policy RETAIN, and the snapshots of resources with the removal policy SNAPSHOT
    - networks to which GuardDuty's automated agent added an endpoint
    - stacks with `termination_protection`, and stacks that were deployed without a role for CloudFormation (the CDK
      sets one)

    `shoal_guard.left_of` lists the resources that remain.
    """

    def __init__(
        self,
        scope: Stack,
        construct_id: str,
        *,
        max_hours: int = 12,
        budget: float | None = None,
        mail: str | None = None,
        idle_minutes: int = 30,
        dollars_an_hour: float | None = None,
    ) -> None:
        """Create the guard of the stack `scope`.

        Args:
            scope: The stack. The guard uses the prices of all resources that the stack has at synthesis.
            construct_id: The construct's id.
            max_hours: Life of the stack in whole hours, 1 to 720, from its first deployment with the guard. To add
                hours later, set the Systems Manager parameter that the warning names.
            budget: Dollars over the stack's life (default: no limit). The guard counts instances and EMR clusters at
                on-demand prices, each machine with a public address. It also counts NAT gateways, elastic addresses,
                interface endpoints, and `dollars_an_hour`. It does not count volumes, requests and traffic.
            mail: Address for warnings (default: no warnings).
            idle_minutes: Time after which an idle EMR cluster is terminated, 5 to 10,080 minutes.
            dollars_an_hour: Dollars per hour of all other resources that run as long as the stack, such as a database.
                Required if the stack has such resources and a budget; otherwise synthesis fails.

        Raises:
            ValueError: An argument is out of range.
        """
        hours, mails = f"a whole number of hours from 1 to {_MOST_HOURS}", "a mail address"
        for name, value, is_valid, bounds in (
            ("max_hours", max_hours, _is_whole(max_hours, 1, _MOST_HOURS), hours),
            ("budget", budget, budget is None or (_is_finite(budget) and budget > 0), "a number of dollars above 0"),
            ("mail", mail, mail is None or (isinstance(mail, str) and _MAIL.fullmatch(mail)), mails),
            (
                "idle_minutes",
                idle_minutes,
                _is_whole(idle_minutes, 5, 10_080),
                "a whole number of minutes from 5 to 10080",
            ),
            (
                *("dollars_an_hour", dollars_an_hour, dollars_an_hour is None or _is_finite(dollars_an_hour)),
                "a number of dollars of at least 0",
            ),
        ):
            if not is_valid:
                raise ValueError(f"Guard: {name}: {value!r} is not {bounds}")
        found = _SynthesisPrices(scope, dollars_an_hour)
        name = scope.stack_name
        account, extension = f"/shoal-guard/{name}/account", f"/shoal-guard/{name}/hours"
        super().__init__(
            scope,
            construct_id,
            name=name,
            budget=budget,
            mail=mail,
            tag=_TAG,
            groups="*",
            budget_name=f"{name[:_LONGEST_NAME]}-guard-{scope.region}",
            settings={
                "max_hours": max_hours,
                "idle_minutes": idle_minutes,
                "account": account,
                "extension": extension,
                "gpu": Lazy.any(found.of("instances")),
                "emr": Lazy.any(found.of("of_emr")),
                "standing": Lazy.any(found.of("standing")),
                "unpriced": Lazy.any(found.of("unpriced")),
            },
        )
        for child, parameter, text in (("Account", account, "{}"), ("Hours", extension, "0")):
            ssm.StringParameter(self, child, parameter_name=parameter, string_value=text)
        clock = self.node.find_child("Clock")
        for part in self.node.children:
            if part is not clock:
                clock.node.add_dependency(part)
        Tags.of(scope).add(_TAG, name)
        Aspects.of(scope).add(_DependOnGuard(scope, self, found if budget else None))


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_finite(value: object) -> bool:
    """Return whether the value is a finite number, and not negative."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


class _SynthesisPrices:
    """Hourly prices of a stack, computed once during synthesis, when all constructs exist."""

    def __init__(self, stack: Stack, dollars_an_hour: float | None) -> None:
        self._stack, self._given = stack, dollars_an_hour

    @cached_property
    def prices(self) -> StackPrices:
        """Prices of the stack. If `dollars_an_hour` is given, it replaces all unknown prices."""
        found = prices_of(self._stack)
        if self._given is not None:
            found.standing += self._given
            found.unpriced.clear()
        return found

    def of(self, field: str) -> "_PriceField":
        return _PriceField(self, field)


@jsii.implements(IStableAnyProducer)
class _PriceField:
    """CDK token for one field of `StackPrices`, resolved during synthesis."""

    def __init__(self, found: _SynthesisPrices, field: str) -> None:
        self._found, self._field = found, field

    def produce(self) -> Any:
        value = getattr(self._found.prices, self._field)
        return ", ".join(sorted(value)) if isinstance(value, set) else value


@jsii.implements(IAspect)
class _DependOnGuard:
    """CDK aspect that makes all other resources of the stack depend on the guard. If there is a budget, it also reports
    an error for resources with an unknown price."""

    def __init__(self, stack: Stack, guard: Guard, found: _SynthesisPrices | None) -> None:
        self._stack, self._guard, self._found = stack, guard, found

    def visit(self, node: IConstruct) -> None:
        if node.node.path != self._stack.node.path:
            return
        clock = self._guard.node.find_child("Clock")
        for child in self._stack.node.children:
            if child.node.path != self._guard.node.path:
                child.node.add_dependency(clock)
        if self._found and (unpriced := self._found.prices.unpriced):
            Annotations.of(self._guard).add_error(
                f"Guard cannot enforce the budget without the prices of {', '.join(sorted(unpriced))}; pass their sum "
                "in dollars per hour as dollars_an_hour"
            )
