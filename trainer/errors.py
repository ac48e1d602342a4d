"""The errors of this package: training that cannot start or go on."""


class TrainingError(Exception):
    """Training cannot start or go on; its text is one sentence for the user, with the cause and a way out."""


SPLIT_ALIKE = "they do not split alike; give all ranks the same Python and NumPy, or take --balance off"
"""What to say of ranks whose rows do not add up."""


class RankError(TrainingError):
    """What goes wrong on one rank alone, amid its steps: that rank has to say it, as the others know only that it is
    gone."""


class LostError(TrainingError):
    """What a rank knows of a failure elsewhere: `what` it lost, `where` in the run; `then` the rest of the sentence."""

    def __init__(self, what: str, where: str, then: str) -> None:
        super().__init__(f"{what} {where}{then}".strip())
        self.what, self.where, self.then = what, where, then
