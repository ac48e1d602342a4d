"""The error of this package: training that cannot start or go on."""


class TrainingError(Exception):
    """Training cannot start or go on; its text is one sentence for the user, with the cause and a way out."""


class RankError(TrainingError):
    """What goes wrong on one rank alone, amid its steps: that rank has to say it, as the others know only that it is
    gone."""
