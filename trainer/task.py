"""Interface of a task, which is one kind of learning on the data of one run.

The training loop knows only row numbers and steps. A task knows the content of the rows, the loss, the evaluation, and
the files to save. All ranks call each method at the same time. All ranks must get the same result, except for the
gradients of a rank's own rows. So a task must not use information that only one rank has.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Generic, Protocol, TypeVar

from shoal_balance import IntArray, Lengths, stratified_rows
from torch import Tensor, nn

from trainer.clock import StepTimer
from trainer.computing.gradients import GradientComputer
from trainer.computing.optimiser import Optimiser, learning_rate
from trainer.config import TrainConfig
from trainer.distributed.ranks import Ranks
from trainer.options.optimisation_options import OptimisationOptions
from trainer.registry import MODELS

TRAINING, VALIDATION, TEST = "training", "validation", "test"
"""Parts of a task's rows: for training, for an evaluation after each epoch, and for an evaluation at the end of the
run.
"""


class EpochStatus(Enum):
    """Status of the rows of the next epoch."""

    READY = "its rows are available"
    PENDING = "its rows are not available yet"
    END = "there will be no more rows"
    STOP = "the run was asked to stop"


class LoopData(Protocol):
    """Data of a run, as the loop sees it."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Number of rows in each part."""
        ...

    @property
    def digest(self) -> str:
        """Digest of the data. A run can be resumed only with the same data."""
        ...


class RowStream(ABC):
    """Rows that arrive while the run trains, in parts. Each part is one epoch.

    All ranks call each method at the same time, except for `checkpoint_written`.
    """

    @abstractmethod
    def begin_epoch(self, stop: Callable[[], bool], *, wait: bool) -> EpochStatus:
        """Prepare the rows of the next epoch, or of the epoch that is resumed from a checkpoint.

        All ranks get the same result. `stop`: returns whether this rank was asked to stop. `wait`: wait a short time
        for rows that are not available yet.
        """

    @abstractmethod
    def end_epoch(self) -> None:
        """Finish an epoch after all its steps."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return the position in the stream for a checkpoint."""

    @abstractmethod
    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a result of `state`. Raises DamagedError if it does not belong to this stream."""

    @abstractmethod
    def checkpoint_written(self) -> None:
        """Handle the end of writing a checkpoint of the latest state. Called only on the first rank."""


DataT = TypeVar("DataT", bound=LoopData)


class Task(ABC, Generic[DataT]):
    """One kind of learning on the data of one run."""

    model: nn.Module
    """Model with all parameters on this rank's device."""
    tables: Sequence[Tensor]
    """Parameters (rows, ...) in which a batch touches only few rows."""
    sparse_tables: Sequence[Tensor] = ()
    """Very large parameters (rows, columns). An operation must not take time proportional to the number of all their
    rows.

    Their gradients contain only touched rows (computing/row_gradients.py). Parameters that are neither in `tables` nor
    in `sparse_tables` have dense gradients.
    """
    row_rates: Sequence[Tensor | None] = ()
    """For each sparse table, factors (rows, 1) of Adagrad's rate for its rows, or None for no factors."""
    precision: str
    """Precision in which the layers compute."""
    stream: RowStream | None = None
    """Stream with the rows of each epoch; None if all epochs have the same rows."""

    @staticmethod
    @abstractmethod
    def load(config: TrainConfig, ranks: Ranks, *, memory: int, stop: Callable[[], bool]) -> DataT:
        """Load the data that `config` names. This rank is allowed to use `memory` bytes.

        `stop`: returns whether this rank was asked to stop, for tasks that wait for data. Raises TrainingError or
        DataError, possibly on one rank only. The caller informs the other ranks.
        """

    @staticmethod
    @abstractmethod
    def resolve_config(config: TrainConfig, ranks: Ranks, data: DataT) -> tuple[TrainConfig, DataT, list[str]]:
        """Return the configuration of a new run, the data of the run, and notes that the first rank shows to the user.

        The result has the settings that depend on the data, and the data that only a new run needs. All ranks call this
        method. Raises the same TrainingError on all ranks.
        """

    @abstractmethod
    def __init__(self, config: TrainConfig, ranks: Ranks, data: DataT) -> None:
        """Create the model, with weights drawn from torch's generator. Raises the same TrainingError on all ranks."""

    def optimiser(self, options: OptimisationOptions) -> Optimiser:
        """Return the optimiser for the steps that all ranks take together."""
        return Optimiser(self.model, self.tables, options, sparse_tables=self.sparse_tables, row_rates=self.row_rates)

    def step_rate(self, options: OptimisationOptions, step: int, steps: int, size: int) -> float:
        """Return the learning rate of step `step` (from 0) of `steps` steps, with `size` rows per step.

        The training loop calls this method before it computes the gradients of the step.
        """
        return learning_rate(options, step, steps, size)

    @abstractmethod
    def gradient_computer(self, timer: StepTimer) -> GradientComputer:
        """Return the object that computes gradients of training rows. It reports its phases to `timer`."""

    def share(self, rows: IntArray, split: IntArray, rank: int) -> IntArray:
        """Return the indices (split[rank],) of the rows of a global batch (n,) that a rank computes."""
        return stratified_rows(self.lengths(rows), split, rank)

    @abstractmethod
    def lengths(self, rows: IntArray) -> Lengths:
        """Return the lengths (n,) of training rows (n,).

        The split uses them to give each rank both short and long rows.
        """

    def touched_rows(self, rows: IntArray) -> Sequence[IntArray]:
        """For each table, return the table rows (m,) that have gradients in a batch of training rows (n,).

        Called only if there are tables.
        """
        raise NotImplementedError

    def touched_sparse_rows(self, rows: IntArray, step: int) -> Sequence[Tensor]:
        """For each sparse table, return the table rows (m,), int64, that training rows (n,) need at a step of the run.

        The result is allowed to contain further table rows.
        """
        raise NotImplementedError

    @abstractmethod
    def evaluate(self, part: str, *, split: IntArray, stop: Callable[[], bool]) -> dict[str, Any] | None:
        """Return the `loss` and other measures of the model on a part's rows, in JSON types, the same on every rank.

        `split` (ranks,): the number of rows that each rank evaluates. The sum is the number of rows of the part.
        Returns None on every rank as soon as `stop` returns True on any rank.
        """

    @abstractmethod
    def summary_measures(self, tested: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the first fields of summary.json: the measures on the test rows.

        Each value is null if the run was stopped.
        """

    @abstractmethod
    def summary_settings(self) -> dict[str, Any]:
        """Return the task's settings for summary.json, such as its precision."""

    def closing_notes(self) -> list[str]:
        """Return notes that the first rank shows to the user at the end of the run."""
        return []

    @abstractmethod
    def save(self, output: Path, *, epoch: int, tested: Mapping[str, Any]) -> None:
        """Save the model after `epoch` epochs to the run's output folder."""


def task_class(model: str) -> type[Task[Any]]:
    """Return the task class of a model. Raises KeyError for an unknown model."""
    kind: type[Task[Any]] = resolve_name(MODELS[model].task)
    return kind
