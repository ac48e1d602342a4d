"""The rules of the preflight that ask AWS: one thing that can stand in a deployment's way, a class.

Easy to get wrong: a service that may not be asked, or that does not answer, is no reason to refuse anything. A rule
lets the error pass, and who runs it says that this could not be checked.
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
    """What is to be deployed, under which name, for whom, and where."""

    topology: Topology
    deployment: str
    owner: str
    account: Account


class OnlineRule(ABC):
    """One thing that can stand in the way."""

    level: ClassVar[Level]
    about: ClassVar[str]
    """What is not checked when AWS does not answer; begins a sentence."""

    @abstractmethod
    def check(self, context: PreflightContext) -> Iterator[str]:
        """A sentence for each time that it does; botocore's errors pass."""
