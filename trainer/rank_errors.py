"""Errors of a rank."""

from common.errors import TrainingError

SAME_SPLIT_ADVICE = "they split the rows differently; give all ranks the same Python and NumPy, or use --balance off"
"""Advice for ranks that computed more or fewer rows than the global batch has."""


class RankError(TrainingError):
    """Error of a single rank during its steps. That rank must report it: the others only notice that it is lost."""


class DivergedError(TrainingError):
    """A loss or a gradient became infinite or NaN, on all ranks."""


class LostError(TrainingError):
    """Failure elsewhere, as this rank observes it.

    `what` was lost, `where` in the run, and `then`, the rest of the sentence.
    """

    def __init__(self, what: str, where: str, then: str) -> None:
        super().__init__(f"{what} {where}{then}".strip())
        self.what, self.where, self.then = what, where, then
