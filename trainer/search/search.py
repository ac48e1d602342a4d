"""Search of `--model auto`. All ranks run trials together until the time limit, or until no candidates are left.

A trial trains a model with the usual loop on the same ranks, but only on a part of the training rows. The model is
evaluated on the other training rows. The search uses neither validation rows nor test rows. After the search, the
chosen model is trained and calibrated like a model with given settings. Only the first rank reads the clock. It
broadcasts its decisions.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from typing import Any

from shoal_balance import BatchOrder

from common.display import plural
from common.files import indented_json
from trainer.clock import Clock
from trainer.config import TrainConfig
from trainer.distributed.ranks import Ranks, Stop
from trainer.loop import Trainer
from trainer.options.section import shown_options
from trainer.output.lines import End
from trainer.output.lines import Search as SearchLine
from trainer.output.lines import Trial as TrialLine
from trainer.output.reporter import Record, open_record
from trainer.output.run_files import SUMMARY, write_whole
from trainer.rank_errors import DivergedError
from trainer.registry import Settings
from trainer.search.candidates import candidate_config, next_candidate
from trainer.search.trials import Trial, best_of, differences, is_hopeless
from trainer.task import TRAINING, VALIDATION, BlockScore, RunData, task_class


class Search:
    """Search on this rank. All ranks call each method at the same time."""

    def __init__(self, config: TrainConfig, ranks: Ranks, data: RunData, stop: Stop) -> None:
        """Prepare the search. Raises TrainingError on all ranks if the output folder is not writable."""
        self._config, self._ranks, self._data, self._stop = config, ranks, data, stop
        self._trials: list[Trial] = []
        self._task = task_class(config.model)
        self._folds = self._task.folds(config, ranks, data)
        steps = BatchOrder(
            rows=data.sizes[TRAINING], global_batch=config.batch_for(ranks.world_size), seed=config.seed
        ).steps
        self._statistics, self._epochs = self._task.statistics(data), config.epochs_for(steps)
        self._until: float = time.monotonic() + config.search_seconds
        self._stopped: Trainer | None = None
        with ranks.agreement():
            self._record = open_record(config.output, fresh=True) if ranks.is_first else Record(None, fresh=False)

    def run(self) -> dict[str, Any] | None:
        """Run the trials. Return the content of summary.json if the run is asked to stop during them, else None.

        Raises TrainingError on all ranks if training diverges in the first trial.
        """
        with self._record:
            rows = self._folds[0].sizes[TRAINING] if self._folds else 0
            self._record.write(SearchLine(limit=self._config.search_seconds, rows=rows, folds=len(self._folds)))
            while (settings := self._ranks.broadcast(self._next())) is not None:
                trial = self._run_trial(settings)
                if self._stopped:
                    return self._stop_summary(self._stopped)
                self._trials.append(trial)
                best = best_of(self._trials) is trial
                self._record.write(TrialLine(trial=len(self._trials), **_plain(trial), best=best))
        return None

    def chosen(self) -> tuple[TrainConfig, dict[str, Any]]:
        """Return the configuration of the final training, and the field `search` of the summary."""
        score = best_of(self._trials).score if self._trials else None
        best = self._best
        config = candidate_config(self._config, best)
        summary = self._search_summary(verdict(config, self._trials, best, cut_short=self._next_settings() is not None))
        return replace(config, temperature=score and exp(score.log_temperature)), summary

    @property
    def _best(self) -> Settings:
        """Settings of the best trial, or the first candidate if there was no trial."""
        settings = best_of(self._trials).settings if self._trials else self._next_settings()
        assert settings is not None
        return settings

    @property
    def _trials_end(self) -> float:
        """Approximate time (time.monotonic) at which the final training must start so that it ends within the time
        limit.
        """
        best = best_of(self._trials)
        more_rows: float = self._data.sizes[TRAINING] / self._folds[0].sizes[TRAINING]
        return self._until - more_rows * best.seconds / max(1, len(best.folds))

    def _next(self) -> Settings | None:
        """Return the next candidate, or None if the search ends. Only the result of the first rank is used."""
        if not self._folds or (self._trials and time.monotonic() > self._trials_end):
            return None
        return self._next_settings()

    def _next_settings(self) -> Settings | None:
        return next_candidate(self._trials, self._statistics, self._epochs, self._config.fixed)

    def _run_trial(self, settings: Settings) -> Trial:
        """Train and evaluate a model on one fold after the other, as long as it can still become the best model.

        Folds that would exceed the time limit are skipped, except the first fold of the first trial.
        """
        began, folds = time.monotonic(), list[Sequence[BlockScore]]()
        for data in self._folds:
            until = self._trials_end if self._trials else self._until if folds else None
            limited = _LimitedStop(self._stop, until)
            trainer = self._trainer(settings, data, limited)
            try:
                scores = trainer.measure()
            except DivergedError:
                if not self._trials:
                    raise
                break
            if scores is None:
                if any(self._ranks.gather(self._stop.requested)):
                    self._stopped = trainer
                break
            folds.append([BlockScore(*block) for block in self._ranks.broadcast([tuple(block) for block in scores])])
            trial = Trial(settings=settings, folds=folds, seconds=0.0)
            if self._trials and is_hopeless(trial, best_of(self._trials)):
                break
        return Trial(settings=settings, folds=folds, seconds=time.monotonic() - began)

    def _trainer(self, settings: Settings, data: RunData, stop: "_LimitedStop") -> "TrialTrainer":
        config, data, _ = self._task.resolve_config(candidate_config(self._config, settings), self._ranks, data)
        batch = config.batch_for(self._ranks.world_size)
        order = BatchOrder(rows=data.sizes[TRAINING], global_batch=batch, seed=config.seed)
        return TrialTrainer(
            config,
            self._ranks,
            data,
            order,
            saved=None,
            clock=Clock(),
            stop=stop if self._ranks.is_first else self._stop,
        )

    def _search_summary(self, sentence: str) -> dict[str, Any]:
        """Return the field `search` of summary.json. `sentence` is its `verdict`."""
        return {
            "verdict": sentence,
            "settings": dict(self._best),
            "seconds": sum(trial.seconds for trial in self._trials),
            "trials": [_plain(trial) for trial in self._trials],
        }

    def _stop_summary(self, trainer: Trainer) -> dict[str, Any]:
        """Report that the search was stopped during a trial. Return the content of summary.json."""
        # The speeds of a trial on a part of the rows, possibly without measured rates, would be misleading.
        unknown = dict.fromkeys(("share_of_ideal", "balanced", "lost"))
        summary = self._search_summary(f"stopped in trial {len(self._trials) + 1}")
        summary = {**trainer.summary(None), **unknown, "search": summary}
        if self._ranks.is_first:
            write_whole(self._config.output / SUMMARY, indented_json(summary))
        self._record.write(End(summary=summary))
        return summary


class _LimitedStop:
    """Stop request that is also set as soon as a time limit has passed."""

    def __init__(self, stop: Stop, until: float | None) -> None:
        """`until`: the deadline, as a value of time.monotonic(); None: no deadline."""
        self._stop, self._until = stop, until

    @property
    def requested(self) -> bool:
        """True if the run was asked to stop, or the time limit has passed."""
        return self._stop.requested or (self._until is not None and time.monotonic() > self._until)


class TrialTrainer(Trainer):
    """Training run of a trial. Only the scores of its model are kept."""

    silent = True

    def initial_rates(self) -> list[float]:
        """Return the rows per second of every rank, or 1 for a single rank.

        A single rank is not measured, because the measurement takes as long as a short trial.
        """
        return super().initial_rates() if self.ranks.world_size > 1 else [1.0]

    def validate(self) -> None:
        """Do nothing, because the model of a trial is evaluated only at the end."""

    def measure(self) -> Sequence[BlockScore] | None:
        """Train, and return the score of each block of held-out rows; None if the run was stopped."""
        self.learn()
        if self.stopped:
            return None
        split = self.balancer.split(self.data.sizes[VALIDATION])
        return self.task.block_scores(split=split, stop=lambda: self.stop.requested)


def verdict(config: TrainConfig, trials: Sequence[Trial], best: Settings, *, cut_short: bool = False) -> str:
    """Return a sentence about the chosen settings, and about their advantage over the first trial."""
    chosen = f"chosen: {shown_options(best)}"
    if not trials:
        return f"{chosen}, without a trial: there are too few rows of a class to compare models"
    best_trial = next(trial for trial in trials if trial.settings == best)
    assert best_trial.score is not None
    seconds = sum(trial.seconds for trial in trials)
    worth = f"{chosen}, with {config.metric} {best_trial.score.metric:.3f} on held-out training rows"
    if best_trial is not trials[0]:
        score, loss, _ = differences(best_trial, trials[0])
        worth += (
            f"; compared with {shown_options(trials[0].settings)}: score {score.mean:+.3f} ± {score.error:.3f}, "
            f"log loss {-loss.mean:+.3f} ± {loss.error:.3f}"
        )
    more = "; --minutes leaves no time for more trials" if cut_short else ""
    return f"{worth}; the best of {plural(len(trials), 'trial')} in {seconds:.0f} s{more}"


def _plain(trial: Trial) -> dict[str, Any]:
    score = trial.score
    return {
        "settings": dict(trial.settings),
        "measures": dict.fromkeys(BlockScore._fields) if score is None else score._asdict(),
        "folds": len(trial.folds),
        "seconds": round(trial.seconds, 1),
    }
