"""Report of an acceptance run, as JSON and as a Markdown page. It contains no keys and no account ID, so it can be
shared."""

from dataclasses import asdict, dataclass, field
from pathlib import Path

from common.files import indented_json
from tools.acceptance_aws.beliefs import CONTRADICTED, BeliefResult

DONE, FAILED, SKIPPED = "done", "failed", "skipped"
_JSON, _PAGE = "report.json", "report.md"


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
        """Write the report to `folder`, as JSON and as Markdown."""
        (folder / _JSON).write_text(indented_json({**asdict(self), "passed": self.passed}).decode(), "utf-8")
        (folder / _PAGE).write_text(self.page(), "utf-8")

    def page(self) -> str:
        """Return the report as a Markdown page."""
        where = "an emulator, which proves nothing about AWS" if self.emulated else f"AWS, {self.region}"
        lines = [
            f"# Acceptance of Shoal: {'passed' if self.passed else 'failed'}",
            "",
            f"`{self.topology}` as `{self.deployment}` on {where}; {self.started} to {self.ended}.",
            "",
            "| dollars | |",
            "|---|---|",
            f"| limit | {self.max_dollars:.2f} |",
            f"| predicted, {self.hours:g} h with everything running | {_dollars(self.predicted)} |",
            f"| counted by Shoal before the end, at most | {_dollars(self.counted)} |",
            "",
            "| step | outcome | seconds | |",
            "|---|---|---|---|",
            *(f"| {each.name} | {each.outcome} | {each.seconds:.1f} | {_cell(each.detail)} |" for each in self.steps),
            "",
            "| belief of the emulator | outcome | |",
            "|---|---|---|",
            *(f"| {each.sentence} | {each.outcome} | {_cell(each.detail)} |" for each in self.beliefs),
            "",
            *([f"The run stopped early: {_cell(self.why)}.", ""] if self.why else []),
            "Left in the account:"
            if self.left
            else "Nothing is left in the account."
            if self.ended
            else "Not ended yet.",
            "",
            *(f"- {each}" for each in self.left),
            "",
        ]
        return "\n".join(lines)


def _dollars(amount: float | None) -> str:
    return "unknown" if amount is None else f"{amount:.2f}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")
