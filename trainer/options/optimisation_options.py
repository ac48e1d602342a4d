"""Options of training steps, of the optimiser, and of the synchronisation between ranks."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from common.checked_values import one_of
from common.errors import TrainingError
from trainer.options.section import Count, NonNegative, Positive, Section, Share, option

TARGET_STEPS, MIN_EPOCHS, MAX_EPOCHS = 500, 6, 24
"""Default number of steps, and the limits for the default number of epochs.

Small datasets need many epochs: an epoch has few steps, and word dropout of one half slows learning.
"""
MIN_STEPS = 192
"""Minimum number of steps. With fewer steps a model learns almost nothing, however often it sees each row."""

DEFAULT_EPOCHS = (
    f"enough for {TARGET_STEPS} steps, from {MIN_EPOCHS} to {MAX_EPOCHS} epochs, or more if {MAX_EPOCHS} epochs have "
    f"fewer than {MIN_STEPS} steps"
)
"""Description of the default number of epochs, if the model has no default of its own."""

GLOBAL_BATCH = 256
"""Number of rows per step if neither the user nor the model sets a number."""
KEPT_ON_RESUME = ("global_batch", "rank_batch", "epochs")
"""Settings that a resumed run keeps unless the user gives them. Those of model and preset do not count."""


@dataclass(frozen=True, kw_only=True)
class OptimisationOptions(Section):
    """Options for the number and size of steps, and for the optimiser."""

    title: ClassVar[str] = "optimisation"

    epochs: Count | None = option("passes over the training rows", default=None, advanced=False)
    global_batch: Count | None = option(
        "rows per step, over all ranks together",
        default=None,
        aliases=("--batch-size",),
        advanced=False,
    )
    rank_batch: Count | None = option(
        "rows per step on each rank, instead of --global-batch. With more ranks, a step then has more rows. A resumed "
        "run keeps its global batch",
        default=None,
        internal=True,
    )
    learning_rate: Positive = option("highest learning rate", default=8e-3, aliases=("--lr",), advanced=False)
    word_rate: Positive = option(
        "learning rate of word vectors, as a multiple of --learning-rate; below 1, rare words are memorised less",
        default=0.25,
        internal=True,
    )
    rate_scaling: Annotated[str, one_of(("root", "linear", "none"))] = option(
        "scaling of --learning-rate, which is meant for a global batch of 256. linear: multiply it by batch / 256, "
        "for sgd; root: multiply it by the square root of batch / 256, for adam; none: do not scale it",
        default="root",
        internal=True,
    )
    optimiser: Annotated[str, one_of(("adam", "adagrad", "sgd"))] = option(
        "optimiser; adam is lazy for sparse gradients: it does not change table rows without a gradient, nor their "
        "moments",
        default="adam",
        aliases=("--optimizer",),
    )
    momentum: Share = option("momentum of sgd", default=0.9, internal=True)
    schedule: Annotated[str, one_of(("cosine", "linear", "constant"))] = option(
        "learning rate after the warm-up: constant, or decaying to 0 linearly or along a cosine",
        default="cosine",
        internal=True,
    )
    warm_up: Share = option(
        "share of all steps in which the learning rate rises to its highest value",
        default=0.05,
        internal=True,
    )
    clip_norm: NonNegative = option("clip gradients to this norm; 0: no clipping", default=1.0, internal=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.global_batch is not None and self.rank_batch is not None:
            raise TrainingError(
                "--global-batch and --rank-batch contradict each other: the first sets the rows of a step over all "
                "ranks, the second sets the rows of each rank; give only one of them"
            )

    @property
    def local_steps(self) -> int:
        """Number of steps that each rank takes alone within one step of the run; 0 if ranks take each step together."""
        return 0

    @property
    def is_asynchronous(self) -> bool:
        """True if ranks take steps without waiting for each other."""
        return False

    def batch_for(self, world_size: int) -> int:
        return self.requested_batch(world_size) or GLOBAL_BATCH

    def requested_batch(self, world_size: int) -> int | None:
        """Return the number of rows in a global batch if the user has set it, else None."""
        if self.local_steps:
            own = self.rank_batch or self.global_batch
            return own and own * self.local_steps * (1 if self.is_asynchronous else world_size)
        return self.rank_batch * world_size if self.rank_batch else self.global_batch

    def epochs_for(self, steps: int) -> int:
        most = max(MAX_EPOCHS, -(-MIN_STEPS // steps))
        return self.epochs or min(max(-(-TARGET_STEPS // steps), MIN_EPOCHS), most)
