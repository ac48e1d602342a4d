"""Parts of a run on one rank, and the interface through which it takes its steps.

synchronous.py and asynchronous.py have the two kinds of steppers. loop.py takes a run from its start to its end.
"""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from shoal_balance import Balancer, BatchOrder, make_balancer

from common.errors import TrainingError
from trainer.clock import Activity, Clock, step_timer
from trainer.config import TrainConfig
from trainer.distributed.exchange import GradientExchange, bytes_a_step
from trainer.distributed.ranks import Ranks, StopSignals
from trainer.model_state import ModelState
from trainer.output.checkpoint_schedule import Checkpointer
from trainer.output.reporter import Reporter
from trainer.output.throughput import Throughput
from trainer.rank_errors import DivergedError
from trainer.rate_measurement import measure_initial_rates, measure_own_rates
from trainer.task import LoopData, task_class

_REBALANCE_STEPS = 10
"""Number of steps after which the split over the ranks is computed again."""


class Stepper(ABC):
    """Takes the steps of a run on this rank. All ranks call each method at the same time."""

    def __init__(
        self,
        config: TrainConfig,
        ranks: Ranks,
        data: LoopData,
        order: BatchOrder,
        *,
        saved: dict[str, Any] | None,
        clock: Clock,
        stop: StopSignals,
    ) -> None:
        """Create the model and its optimiser, restore them from `saved` if given, and measure the ranks' own rates.

        Raises TrainingError on all ranks in these cases: the saved state belongs to a different run, `config` does not
        fit the number of ranks, or the output folder is not writable.
        """
        self.config, self.ranks, self.data, self.order, self.clock, self._stop = config, ranks, data, order, clock, stop
        torch.manual_seed(config.seed)
        self.task = task = task_class(config.model)(config, ranks, data)
        self.state = state = ModelState(config, task, data, order)
        if saved:
            with ranks.agreement():
                state.restore(saved)

        self.timer = step_timer(ranks.device)
        self.compute = task.gradient_computer(self.timer)
        self.compute.slowness = config.slow.get(ranks.rank, 1.0)
        self.exchange = GradientExchange(
            task.model,
            task.tables,
            timer=self.timer,
            clip_norm=config.optimisation.clip_norm,
            sparse_tables=task.sparse_tables,
        )
        with clock.during(Activity.RATES):
            rates = measure_initial_rates(self.compute, state.optimiser, total=order.size(0))
        with ranks.agreement():
            self.balancer = _balancer(config.balance, rates, order)

        clock.switch_to(Activity.OTHER)
        self.throughput = Throughput(state.progress, clock, rates)
        self.reporter = reporter = Reporter(
            config.output, ranks, rows=state.epochs * order.rows, seen=state.progress.rows_seen, fresh=not saved
        )
        self.checkpointer = Checkpointer(
            config.checkpoint_minutes,
            lambda: state.state_dict(self.throughput.seconds),
            reporter,
            clock,
            self.throughput,
            state.steps_done if saved else None,
        )

    def stop_requested(self) -> bool:
        """Return whether this rank was asked to stop, or cannot save the run."""
        return self._stop.requested or self.reporter.output_missing

    def taking_steps(self) -> AbstractContextManager[None]:
        """Return the context in which the run takes its steps."""
        return nullcontext()

    @abstractmethod
    def take_steps(self) -> None:
        """Take at least one step of the epoch. Return at the latest when the epoch ends or a checkpoint is due.

        Raises the same TrainingError on all ranks if training diverged.
        """

    def finish_steps(self) -> None:
        """Wait for the steps that were taken. Afterwards all ranks have the same weights, except for rounding.

        Raises the same TrainingError on all ranks if training diverged.
        """
        return

    def measure_rates_again(self) -> None:
        """Measure the ranks' own rates after the last step. The higher of a rank's two rates counts."""
        with self.clock.during(Activity.RATES):
            split = self.balancer.split(self.order.size(0))
            rates = measure_own_rates(self.compute, self.state.optimiser, split=split)
        self.throughput.rates = [max(pair) for pair in zip(self.throughput.rates, rates, strict=True)]

    def require_finite(self, what: str, value: float, step: int) -> None:
        """Raise DivergedError if `value` is infinite or NaN. `what` is the name of the value, for the message."""
        if not np.isfinite(value):
            raise DivergedError(
                f"the {what} is {value} at step {step + 1}; lower --learning-rate" + self.checkpointer.resume_advice()
            )

    def communication(self) -> dict[str, Any]:
        """Return the fields of summary.json that describe the traffic between ranks."""
        traffic = self.ranks.gather(vars(self.exchange.traffic))
        return {"bytes_a_step": bytes_a_step(traffic, local_steps=self.config.optimisation.local_steps or 1)}


def _balancer(how: str, rates: list[float], order: BatchOrder) -> Balancer:
    """Return the balancer that `--balance` names. Raises TrainingError if it does not fit the number of ranks.

    `rates` (ranks,): the ranks' own rates in rows per second.
    """
    try:
        return make_balancer(
            how, np.array(rates), every=_REBALANCE_STEPS, steps_per_epoch=order.steps, total=order.size(0)
        )
    except ValueError as error:
        raise TrainingError(f"--balance {how}: {error}") from error
