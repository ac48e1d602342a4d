"""What a search tells its users: a line of the record for each trial, and at the end a sentence on what was chosen and
why."""

from collections.abc import Sequence
from typing import Any

from common.display import plural
from trainer.config import TrainConfig
from trainer.options.section import shown_options
from trainer.output.lines import Trial as TrialLine
from trainer.search.candidates import Settings
from trainer.search.trials import Trial, best_of, differences
from trainer.task import BlockScore


def trial_line(trials: Sequence[Trial]) -> TrialLine:
    return TrialLine(trial=len(trials), **_plain(trials[-1]), best=best_of(trials) is trials[-1])


def told(config: TrainConfig, trials: Sequence[Trial], best: Settings) -> dict[str, Any]:
    """What summary.json has of a search so far, whose `best` settings are known."""
    return {
        "verdict": verdict(config, trials, best),
        "settings": dict(best),
        "seconds": sum(trial.seconds for trial in trials),
        "trials": [_plain(trial) for trial in trials],
    }


def verdict(config: TrainConfig, trials: Sequence[Trial], best: Settings) -> str:
    """What was chosen, and why."""
    chosen = f"{shown_options(best)} is taken"
    if not trials:
        return f"{chosen}, without a trial: there are too few rows of a class to compare models by"
    found = next(trial for trial in trials if trial.settings == best)
    assert found.score is not None
    seconds = sum(trial.seconds for trial in trials)
    worth = f"{chosen}, with {config.metric} {found.score.metric:.3f} on training rows held out"
    if found is not trials[0]:
        gain = differences(found, trials[0])[0]
        worth += f", and a score {gain.mean:+.3f} ± {gain.error:.3f} beside {shown_options(trials[0].settings)}"
    return f"{worth}; the best of {plural(len(trials), 'trial')} in {seconds:.0f} s"


def _plain(trial: Trial) -> dict[str, Any]:
    score = trial.score
    return {
        "settings": dict(trial.settings),
        "measures": dict.fromkeys(BlockScore._fields) if score is None else score._asdict(),
        "folds": len(trial.folds),
        "seconds": round(trial.seconds, 1),
    }
