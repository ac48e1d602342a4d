"""`Guard`, a construct that deletes its own stack at a maximum age."""

import re

import jsii
from aws_cdk import Aspects, IAspect, Stack, Tags
from aws_cdk import aws_ssm as ssm
from constructs import IConstruct

from shoal_guard.stack_guard import StackGuard

_TAG = "shoal:guarded"
_MOST_HOURS = 720
_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")


class Guard(StackGuard):
    """A Lambda function that deletes its stack at the end of the stack's life.

    AWS runs the function every five minutes. It first sends a warning by mail. At least ten minutes later it sets auto
    scaling groups to zero instances, terminates EMR clusters, and deletes the stack. Idle EMR clusters are terminated
    earlier.

    All other resources of the stack depend on the guard and get the tag `shoal:guarded`. So the guard also deletes a
    stack that was created only in part.

    The package's README lists what CloudFormation does not delete, such as buckets that contain objects.
    """

    def __init__(
        self,
        scope: Stack,
        construct_id: str,
        *,
        max_hours: int = 12,
        mail: str | None = None,
        idle_minutes: int = 30,
    ) -> None:
        """Create the guard of the stack `scope`.

        Args:
            scope: The stack.
            construct_id: The construct's id.
            max_hours: Life of the stack in whole hours, 1 to 720, from its first deployment with the guard. To add
                hours later, set the Systems Manager parameter that the warning names.
            mail: Address for warnings (default: no warnings).
            idle_minutes: Time after which an idle EMR cluster is terminated, 5 to 10,080 minutes.

        Raises:
            ValueError: An argument is out of range.
        """
        hours = f"a whole number of hours from 1 to {_MOST_HOURS}"
        for name, value, is_valid, bounds in (
            ("max_hours", max_hours, _is_whole(max_hours, 1, _MOST_HOURS), hours),
            ("mail", mail, mail is None or (isinstance(mail, str) and _MAIL.fullmatch(mail)), "a mail address"),
            (
                "idle_minutes",
                idle_minutes,
                _is_whole(idle_minutes, 5, 10_080),
                "a whole number of minutes from 5 to 10080",
            ),
        ):
            if not is_valid:
                raise ValueError(f"Guard: {name}: {value!r} is not {bounds}")
        name = scope.stack_name
        account, extension = f"/shoal-guard/{name}/account", f"/shoal-guard/{name}/hours"
        super().__init__(
            scope,
            construct_id,
            name=name,
            mail=mail,
            tag=_TAG,
            groups="*",
            settings={
                "max_hours": max_hours,
                "idle_minutes": idle_minutes,
                "account": account,
                "extension": extension,
            },
        )
        for child, parameter, text in (("Account", account, "{}"), ("Hours", extension, "0")):
            ssm.StringParameter(self, child, parameter_name=parameter, string_value=text)
        clock = self.node.find_child("Clock")
        for part in self.node.children:
            if part is not clock:
                clock.node.add_dependency(part)
        Tags.of(scope).add(_TAG, name)
        Aspects.of(scope).add(_DependOnGuard(scope, self))


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


@jsii.implements(IAspect)
class _DependOnGuard:
    """CDK aspect that makes all other resources of the stack depend on the guard."""

    def __init__(self, stack: Stack, guard: Guard) -> None:
        self._stack, self._guard = stack, guard

    def visit(self, node: IConstruct) -> None:
        if node.node.path != self._stack.node.path:
            return
        clock = self._guard.node.find_child("Clock")
        for child in self._stack.node.children:
            if child.node.path != self._guard.node.path:
                child.node.add_dependency(clock)
