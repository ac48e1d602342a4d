"""The rules of the preflight that ask AWS: a class for each obstacle to a deployment.

Do not catch errors of AWS in a rule: a service that refuses or does not answer is no reason to stop a deployment. The
caller reports that this could not be checked.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from bootstrap.aws.account import Account
from infra.rules import Level
from infra.topology import Topology


@dataclass(frozen=True, kw_only=True)
class PreflightContext:
    """What to deploy, under which name, for whom, and where."""

    topology: Topology
    deployment: str
    owner: str
    account: Account


class OnlineRule(ABC):
    """One possible obstacle to a deployment."""

    level: ClassVar[Level]
    about: ClassVar[str]
    """What this rule checks, as the beginning of a sentence such as `... could not be checked`."""

    @abstractmethod
    def check(self, context: PreflightContext) -> Iterator[str]:
        """A sentence for each obstacle found. Raises botocore's errors."""
