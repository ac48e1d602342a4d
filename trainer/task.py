"""The interface of a task: a kind of learning, on the data of one run.

The loop knows only row numbers and steps. A task knows what these rows are, what is learnt from them, how that is
evaluated, and what is saved at the end. A task must not answer by what only one rank knows: all ranks ask at the same
time and, except for the gradients of their own rows, must get the same answers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from shoal_balance import IntArray, Lengths, stratified_rows
from torch import Tensor, nn

from trainer.clock import StepTimer
from trainer.computing.gradients import GradientComputer
from trainer.computing.optimiser import Optimiser, learning_rate
from trainer.config import TrainConfig
from trainer.distributed.ranks import Ranks
from trainer.registry import MODELS, imported

TRAINING, VALIDATION, TEST = "training", "validation", "test"
"""The parts of a task's rows: to learn from; to evaluate after each epoch; to evaluate once at the end."""


class NextEpoch(Enum):
    READY = "its rows are there"
    LATER = "its rows are not there yet"
    END = "there will be no more rows"
    STOP = "the run was asked to stop"


class RunData(Protocol):
    """The data of a run, as far as the loop knows it."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """The number of rows of each part."""
        ...

    @property
    def digest(self) -> str:
        """The digest of the data. A run can be resumed only with the same data."""
        ...


DataT = TypeVar("DataT", bound=RunData)


class Traits(NamedTuple):
    """What a search of settings has to know of labelled rows."""

    rows: int
    """To learn from."""
    rated: bool
    """Whether there are ratings besides the labels."""
    words: float
    """Of a training row, on average."""


class BlockScore(NamedTuple):
    """How good a model is on a block of rows."""

    score: float
    """By which models are compared."""
    metric: float
    """The one of `--metric`."""
    log_loss: float
    """Of calibrated probabilities; lower is better."""
    log_temperature: float
    """The logarithm of the temperature that fits the rows of all blocks."""


class Task(ABC, Generic[DataT]):
    """One kind of learning, on the data of one run."""

    model: nn.Module
    """The model, with all of its parameters on this rank's device."""
    tables: Sequence[Tensor]
    """Parameters (rows, ...) of which a batch touches few rows."""
    sparse_tables: Sequence[Tensor] = ()
    """Parameters (rows, columns) so large that nothing may take as long as all of their rows: their gradients have the
    touched rows alone (computing/row_gradients.py). All parameters in neither have gradients everywhere."""
    row_rates: Sequence[Tensor | None] = ()
    """Of the sparse tables what Adagrad's rates of their rows (rows, 1) are multiplied by; None: by nothing."""
    precision: str
    """The precision of the layers."""

    @staticmethod
    @abstractmethod
    def load(config: TrainConfig, ranks: Ranks, *, memory: int, stop: Callable[[], bool]) -> DataT:
        """Load the data that `config` names; this rank may use `memory` bytes. `stop`: whether this rank was asked to
        stop, for who has to wait for data.

        Raises TrainingError or DataError, also on one rank alone: the caller informs the others.
        """

    @staticmethod
    def resolve_config(config: TrainConfig, ranks: Ranks, data: DataT) -> tuple[TrainConfig, DataT, list[str]]:  # noqa: ARG004
        """The configuration of a new run, with what depends on the data; the data with what only a new run needs; and
        notes for the user, on the first rank.

        Every rank calls it. Raises TrainingError, the same on all ranks.
        """
        return config, data, []

    @abstractmethod
    def __init__(self, config: TrainConfig, ranks: Ranks, data: DataT) -> None:
        """The model's weights are drawn from torch's generator. Raises TrainingError, the same on all ranks."""

    def optimisation(self, config: TrainConfig) -> TrainConfig:
        """The optimiser's options for the steps that all ranks take together."""
        return config

    def optimiser(self, config: TrainConfig) -> Optimiser:
        options = self.optimisation(config)
        return Optimiser(self.model, self.tables, options, sparse_tables=self.sparse_tables, row_rates=self.row_rates)

    def step_rate(self, config: TrainConfig, step: int, steps: int, size: int) -> float:
        """The learning rate of a step of `size` rows, of `steps` in the whole run; asked before its gradients."""
        return learning_rate(config, step, steps, size)

    @abstractmethod
    def gradient_computer(self, timer: StepTimer) -> GradientComputer:
        """What computes the gradients of training rows; it reports its phases to `timer`."""

    evaluates_epoch = True
    """Whether the model is evaluated after this epoch."""
    saves_when_stopped = False
    """Whether a run that is asked to stop leaves a model, too."""

    def begin_epoch(self, stop: Callable[[], bool], *, wait: bool) -> NextEpoch:  # noqa: ARG002
        """Get the rows of the next epoch, or of one that was begun before a checkpoint. All ranks call it at once, and
        get the same answer. `stop`: whether this rank was asked to stop. `wait`: some time for rows to be there."""
        return NextEpoch.READY

    def end_epoch(self) -> bool:
        """The rows of the epoch were learnt from, all of them; returns whether that changes `state`."""
        return False

    def state(self) -> dict[str, Any]:
        """What a checkpoint has to hold of the task, besides the model: plain values."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from such a state. Raises DamagedError for another one."""
        del state

    def checkpoint_written(self) -> None:
        """The newest state is in a checkpoint; on the first rank."""
        return

    def share(self, rows: IntArray, split: IntArray, rank: int) -> IntArray:
        """(split[rank],): which of a global batch's rows (n,) a rank computes."""
        return stratified_rows(self.lengths(rows), split, rank)

    @abstractmethod
    def lengths(self, rows: IntArray) -> Lengths:
        """(n,): the lengths of these training rows (n,); each rank gets short and long ones alike."""

    @abstractmethod
    def touched_rows(self, rows: IntArray) -> Sequence[IntArray]:
        """For each table the rows (m,) that have gradients in a batch of these training rows (n,)."""

    def touched_sparse_rows(self, rows: IntArray, step: int) -> Sequence[Tensor]:
        """For each sparse table the rows (m,) int64 that these training rows (n,) need at a step of the run; other rows
        may be there, too."""
        raise NotImplementedError

    @abstractmethod
    def evaluate(self, part: str, *, split: IntArray, stop: Callable[[], bool]) -> dict[str, Any] | None:
        """The `loss` of the model on a part's rows, and other measures, as JSON has them, the same on every rank.

        `split` (ranks,) sums to the part's size: each rank evaluates so many rows. Returns None, on every rank, once
        `stop` returns True on any of them.
        """

    @staticmethod
    def traits(data: DataT) -> Traits:
        """What candidates of a search on `data` depend on."""
        raise NotImplementedError

    @staticmethod
    def folds(config: TrainConfig, ranks: Ranks, data: DataT) -> Sequence[DataT]:
        """Training rows of `data`, split into some to train on and others, as validation rows, to compare models by: a
        split each trial of a search is made of; none where there are too few rows."""
        raise NotImplementedError

    def block_scores(self, *, split: IntArray, stop: Callable[[], bool]) -> Sequence[BlockScore] | None:
        """The scores on the validation rows of a fold, split as in `evaluate`, the same on every rank; None where it
        was stopped."""
        raise NotImplementedError

    @abstractmethod
    def summary_measures(self, tested: Mapping[str, Any] | None) -> dict[str, Any]:
        """The measures on the test rows that summary.json begins with; all None in a run that was stopped."""

    @abstractmethod
    def summary_settings(self) -> dict[str, Any]:
        """The settings of the task for summary.json, such as its precision."""

    def closing_notes(self) -> list[str]:
        """Notes for the user when the run has come to its end; of the first rank."""
        return []

    @abstractmethod
    def save(self, output: Path, *, epoch: int, tested: Mapping[str, Any]) -> None:
        """Save the model, as it is after `epoch` epochs, in a run's folder."""


def task_class(model: str) -> type[Task[Any]]:
    """The task class of a model. Raises KeyError for an unknown model."""
    kind: type[Task[Any]] = imported(MODELS[model].task)
    return kind
