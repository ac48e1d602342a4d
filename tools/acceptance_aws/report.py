"""Report of an acceptance run, as JSON. It contains no keys and no account ID, so it can be shared."""

from dataclasses import asdict, dataclass, field
from pathlib import Path

from common.files import indented_json
from tools.acceptance_aws.beliefs import CONTRADICTED, BeliefResult

DONE, FAILED, SKIPPED = "done", "failed", "skipped"
NAME = "report.json"


@dataclass(kw_only=True)
class Step:
    """Step of an acceptance run, with its outcome. `detail` is the reason of a failure, or the result."""

    name: str
    command: str = ""
    outcome: str = FAILED
    seconds: float = 0.0
    detail: str = ""


@dataclass(kw_only=True)
class Report:
    """Report of an acceptance run.

    `predicted` is the predicted cost in dollars. `counted` is the maximum cost in dollars that Shoal counted before the
    deployment was destroyed, or None if unknown.
    """

    emulated: bool
    region: str
    topology: str
    deployment: str
    started: str
    ended: str = ""
    max_dollars: float
    hours: float
    predicted: float
    counted: float | None = None
    beliefs: list[BeliefResult] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    complete: bool = False
    """Whether all steps were run. Otherwise `why` is the reason."""
    why: str = ""
    left: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every step succeeded, no belief is contradicted, and nothing that the run created is left."""
        done = self.complete and all(each.outcome != FAILED for each in self.steps)
        done = done and all(each.outcome != CONTRADICTED for each in self.beliefs)
        return done and bool(self.ended) and not self.left

    def write(self, folder: Path) -> None:
        (folder / NAME).write_bytes(indented_json({**asdict(self), "passed": self.passed}))
