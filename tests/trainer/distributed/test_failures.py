"""Of all failures of a run the one is reported from which the others follow."""

import pytest

from trainer.distributed.failures import Failure, FailureKind, root_cause

FINAL, CAUSE, CONSEQUENCE = FailureKind


def failure(kind: FailureKind, time: float, *, attempt: int = 0, where: str | None = "at step 5") -> Failure:
    return Failure(kind=kind, time=time, what=f"{kind} at {time:g}", attempt=attempt, where=where)


@pytest.mark.parametrize(
    ("failures", "found"),
    [
        ([failure(CONSEQUENCE, 1), failure(CAUSE, 3), failure(CAUSE, 2)], "cause at 2 at step 5"),
        ([failure(CONSEQUENCE, 2), failure(CONSEQUENCE, 1)], "consequence at 1 at step 5"),
        ([failure(CAUSE, 1), failure(CONSEQUENCE, 3, attempt=1), failure(CAUSE, 4, attempt=1)], "cause at 4 at step 5"),
        ([failure(FINAL, 2), failure(CAUSE, 1), failure(CAUSE, 3, attempt=1)], "final at 2 at step 5"),
        ([failure(CAUSE, 1, where=None), failure(CONSEQUENCE, 2, where="at step 7")], "cause at 1 at step 7"),
        ([failure(CAUSE, 1, where=None)], "cause at 1"),
    ],
)
def test_a_failure_that_would_come_again_is_reported_or_else_the_first_cause_of_the_last_attempt(
    failures: list[Failure], found: str
) -> None:
    assert root_cause(failures).short == found
