"""`shoal.balance` for the Trainer of Hugging Face's library: GPUs of unequal speed, started by torchrun or accelerate.

    trainer = BalancedTrainer(model=model, args=arguments, train_dataset=texts)
    trainer.train()

A global batch has `per_device_train_batch_size` rows for each rank, as always; how many of them each rank computes
follows its speed.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback

from shoal.balance.batches import BalancedBatches, Step


class BalancedTrainer(Trainer):  # type: ignore[misc]
    """A Trainer whose ranks compute as many rows of each batch as fit their speed. It learns what ranks of equal speed
    learn: losses of tokens, of models that divide by `num_items_in_batch`, are averaged over the tokens of the global
    batch, others over its rows. The last batch of an epoch is learnt from, too, whatever `dataloader_drop_last` says.

    A `compute_loss` of your own gives the mean over the rows of this rank, and is to be multiplied by `loss_scale`.
    """

    def __init__(self, *args: Any, max_rows: int | None = None, rebalance_every: int = 10, **kwargs: Any) -> None:
        """`max_rows`, `rebalance_every`: as those of BalancedBatches; the other arguments are Trainer's."""
        super().__init__(*args, **kwargs)
        self._max_rows, self._rebalance_every = max_rows, rebalance_every
        self._step: Step | None = None
        self.batches: BalancedBatches | None = None
        self.add_callback(_Beginning(self))

    @property
    def loss_scale(self) -> float:
        """What the mean loss of this rank's rows is to be multiplied by in this step; 1 outside of training."""
        return self._step.loss_scale if self._step else 1.0

    def get_train_dataloader(self) -> DataLoader[Any]:
        """A DataLoader of this rank's rows of each global batch. Raises ValueError where the last batch of an epoch has
        fewer rows than there are ranks."""
        usual = super().get_train_dataloader()
        rows, world = len(usual.dataset), dist.get_world_size() if dist.is_initialized() else 1
        batch = self.args.train_batch_size * world
        if 0 < rows % batch < world:
            raise ValueError(
                f"the last of the batches of {batch} has {rows % batch} of {rows} rows, and {world} ranks need one "
                "each; choose another per_device_train_batch_size, or leave out rows"
            )
        self.batches = BalancedBatches(
            rows,
            global_batch=batch,
            seed=self.args.seed if self.args.data_seed is None else self.args.data_seed,
            rebalance_every=self._rebalance_every,
            max_rows=self._max_rows,
            device=self.args.device,
        )
        return DataLoader(
            usual.dataset,
            batch_sampler=self.batches,
            collate_fn=usual.collate_fn,
            num_workers=usual.num_workers,
            pin_memory=usual.pin_memory,
            worker_init_fn=usual.worker_init_fn,
            persistent_workers=usual.persistent_workers,
            prefetch_factor=usual.prefetch_factor,
        )

    def training_step(
        self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """A step on this rank's rows. A loss of tokens is a sum divided by the tokens of all ranks, which needs no
        scale; any other is the mean over this rank's rows."""
        assert self.batches is not None
        with self.batches.step() as step:
            tokens = num_items_in_batch is not None and _are_tokens(inputs.get("labels"))
            self._step = None if tokens else step
            try:
                found: Tensor = super().training_step(model, inputs, num_items_in_batch if tokens else None)
            finally:
                self._step = None
        return found

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        """The loss, scaled in training so that its mean over ranks is the mean over the global batch."""
        found = super().compute_loss(*args, **kwargs)
        if isinstance(found, tuple):
            return (found[0] * self.loss_scale, *found[1:])
        return found * self.loss_scale


class _Beginning(TrainerCallback):  # type: ignore[misc]
    """Has DDP tell the times, and goes on where a checkpoint was: the Trainer draws the batches before it, and drops
    them."""

    def __init__(self, trainer: BalancedTrainer) -> None:
        self._trainer, self._dropped = trainer, 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        batches, model = self._trainer.batches, self._trainer.model_wrapped
        assert batches is not None
        if isinstance(model, DistributedDataParallel):
            batches.measure(model)
        elif batches.ranks > 1:
            raise ValueError(
                f"{batches.ranks} ranks train by {type(model).__name__}, and only DistributedDataParallel can be "
                "balanced; on a machine without GPUs give use_cpu=True to TrainingArguments"
            )
        updates = -(-len(batches) // args.gradient_accumulation_steps)
        epoch, update = divmod(state.global_step, updates)
        batches.load_state_dict({**batches.state_dict(), "done": epoch * len(batches)})
        self._dropped = 0 if args.ignore_data_skip else update * args.gradient_accumulation_steps

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._dropped:
            batches = self._trainer.batches
            assert batches is not None
            batches.skip_to(batches.state_dict()["done"] + self._dropped)
            self._dropped = 0


def _are_tokens(labels: Any) -> bool:
    return isinstance(labels, Tensor) and labels.dim() > 1 and not torch.is_floating_point(labels)
