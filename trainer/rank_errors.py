"""Errors of one rank among others."""

from common.errors import TrainingError

SAME_SPLIT_ADVICE = "they split the rows differently; give all ranks the same Python and NumPy, or use --balance off"
"""Advice for ranks whose rows do not add up to the global batch."""


class RankError(TrainingError):
    """An error of one rank alone during its steps. That rank has to report it: the others only know that it is gone."""


class DivergedError(TrainingError):
    """A loss or a gradient became infinite or NaN, on all ranks."""


class LostError(TrainingError):
    """A failure elsewhere, as this rank sees it: `what` it lost, `where` in the run, and `then`, the rest of the
    sentence."""

    def __init__(self, what: str, where: str, then: str) -> None:
        super().__init__(f"{what} {where}{then}".strip())
        self.what, self.where, self.then = what, where, then
