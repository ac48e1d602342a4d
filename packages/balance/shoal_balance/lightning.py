"""`Balance`, a callback that balances GPUs of unequal speed in Lightning's Trainer with the DDP strategy.

    def train_dataloader(self):  # in the LightningModule or the LightningDataModule
        return DataLoader(dataset, batch_sampler=BalancedBatches(len(dataset), global_batch=256))

    trainer = Trainer(strategy="ddp", use_distributed_sampler=False, callbacks=[Balance()])

Each rank computes a part of each global batch in proportion to its speed.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from shoal_balance.torch import BalancedBatches, Step


class Balance(Callback):  # type: ignore[misc]
    """Callback that measures the ranks, scales their losses, and stores the sampler's position in checkpoints.

    `training_step` must return the mean loss over this rank's rows, as usual. It must not wait for other ranks, as
    `self.log(..., sync_dist=True)` does, because then all ranks look equally slow.
    """

    def __init__(self) -> None:
        self._batches: BalancedBatches | None = None
        self._state: Mapping[str, Any] | None = None
        self._open = ExitStack()
        self._step: Step | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Find the sampler and start measuring. Raises TypeError if the sampler is not BalancedBatches, or if several
        ranks train without DDP."""
        sampler = getattr(trainer.train_dataloader, "batch_sampler", None)
        if not isinstance(sampler, BalancedBatches):
            raise TypeError(
                "the batch_sampler of the training DataLoader must be a BalancedBatches; also pass "
                "use_distributed_sampler=False to the Trainer"
            )
        self._batches, self._open = sampler, ExitStack()  # an earlier, failed run may have left a step open
        if isinstance(trainer.strategy.model, DistributedDataParallel):
            sampler.measure(trainer.strategy.model)
        elif sampler.ranks > 1:
            raise TypeError(
                f"Balance does not support {type(trainer.strategy).__name__}; pass strategy='ddp' to the Trainer"
            )
        if self._state is not None:
            sampler.load_state_dict(self._state)
            self._state = None
            iter(trainer.fit_loop._data_fetcher)  # restart the iterator, because Lightning has already drawn batches

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Start a step."""
        assert self._batches is not None
        self._step = self._open.enter_context(self._batches.step())

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Tensor) -> None:
        """Multiply the loss by the step's `loss_scale`, in place."""
        if self._step is not None:
            loss.mul_(self._step.loss_scale)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """End the step."""
        self._step = None
        self._open.close()

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the sampler."""
        return self._batches.state_dict() if self._batches else {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Store a position from which the next training run continues."""
        self._state = state_dict or None
