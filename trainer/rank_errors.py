"""Error types of a rank, in addition to TrainingError."""

from common.errors import TrainingError

SAME_SPLIT_ADVICE = "they split the rows differently; give all ranks the same Python and NumPy, or use --balance off"
"""Advice in errors about ranks that computed more or fewer rows than the global batch contains."""


class RankError(TrainingError):
    """Error of a single rank during its steps.

    That rank must report the error, because the other ranks only notice that the rank is lost.
    """


class DivergedError(TrainingError):
    """The loss or the gradient norm became infinite or NaN. All ranks raise this error."""


class LostError(TrainingError):
    """Failure of another rank or machine, as this rank observes it.

    The message consists of `what` (what was lost), `where` (the position in the run) and `then` (the rest of the
    sentence).
    """

    def __init__(self, what: str, where: str, then: str) -> None:
        super().__init__(f"{what} {where}{then}".strip())
        self.what, self.where, self.then = what, where, then
