"""`BalancedTrainer`, Hugging Face's Trainer for GPUs of unequal speed, started by torchrun or accelerate.

    trainer = BalancedTrainer(model=model, args=arguments, train_dataset=texts)
    trainer.train()

As usual, the size of a global batch is `per_device_train_batch_size` times the number of ranks. Each rank computes a
part of the batch in proportion to its speed.
"""

from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from shoal_balance.torch import BalancedBatches

_IGNORED = -100
"""Label that transformers gives to tokens that do not count in the loss."""


class BalancedTrainer(Trainer):  # type: ignore[misc]
    """Trainer that gives each rank rows in proportion to its speed, without changing the result of the training.

    Token losses are averaged over the tokens of the global batch. Other losses are averaged over its rows. The last
    batch of an epoch is always used, even with `dataloader_drop_last`.

    If you override `compute_loss`, return the mean over the rows (or tokens) of this rank, times `loss_scale`.
    """

    def __init__(self, *args: Any, max_rows: int | None = None, rebalance_every: int = 10, **kwargs: Any) -> None:
        """Create the trainer. BalancedBatches gets `max_rows` and `rebalance_every`; Trainer gets all other arguments.

        Raises ValueError for arguments that do not support ranks of unequal speed.
        """
        super().__init__(*args, **kwargs)
        self._max_rows, self._rebalance_every = max_rows, rebalance_every
        self._scale, self._all_tokens = 1.0, 0.0
        self.batches: BalancedBatches | None = None
        if self.compute_loss_func is not None:
            raise ValueError(
                "BalancedTrainer cannot scale the loss of compute_loss_func; override compute_loss instead, and "
                "multiply its loss by loss_scale"
            )
        if not self.args.average_tokens_across_devices:
            raise ValueError("BalancedTrainer needs average_tokens_across_devices=True in TrainingArguments")
        if self.args.train_sampling_strategy != "random":
            raise ValueError(
                f"BalancedTrainer does not support train_sampling_strategy={self.args.train_sampling_strategy}; use "
                "random"
            )
        self.add_callback(_BalanceCallback(self))

    @property
    def loss_scale(self) -> float:
        """Factor by which to multiply this rank's mean loss in the current step; 1 outside of training."""
        return self._scale

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Train as `Trainer.train` does. Repeated calls are allowed."""
        self.model_wrapped = self.model  # drop the DDP wrapper of an earlier call, because its hook uses old batches
        return super().train(*args, **kwargs)

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return a DataLoader that yields this rank's rows of each global batch.

        Raises ValueError if the last batch of an epoch has fewer rows than there are ranks.
        """
        usual = super().get_train_dataloader()
        rows, world = len(usual.dataset), dist.get_world_size() if dist.is_initialized() else 1
        batch = self._train_batch_size * world
        if 0 < rows % batch < world:
            raise ValueError(
                f"with {rows} rows in batches of {batch} the last batch has {rows % batch} rows, but {world} ranks "
                "need at least one each; choose a different per_device_train_batch_size, or leave out rows"
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

    def get_batch_samples(self, epoch_iterator: Any, num_batches: int, device: torch.device) -> tuple[list[Any], Any]:
        """Return the batches of one accumulated update and their number of items, as Trainer does.

        Also count the labelled tokens of these batches on all ranks.
        """
        parts, items = super().get_batch_samples(epoch_iterator, num_batches, device)
        self._all_tokens = 0.0
        if parts and (own := [self._tokens(each) for each in parts])[0] is not None:
            self._all_tokens = float(self.accelerator.gather(torch.tensor(sum(own), device=device)).sum())
        return parts, items

    def training_step(
        self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Run one step on this rank's rows. Return the mean loss over these rows, or over their tokens.

        `num_items_in_batch` is not passed to Trainer, because not every model divides its loss by this number.
        """
        assert self.batches is not None
        with self.batches.step() as step:
            self._scale, own = step.loss_scale, self._tokens(inputs)
            if own is not None and self._all_tokens:
                share = own / self._all_tokens
                self._scale = self.batches.ranks * share * self.current_gradient_accumulation_steps
            try:
                loss = super().training_step(model, inputs, None)
            finally:
                self._scale = 1.0
        return cast(Tensor, loss)

    def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        """Return the loss. In training it is multiplied by `loss_scale`, so that its mean over the ranks is the mean
        over the global batch."""
        loss = super().compute_loss(*args, **kwargs)
        if isinstance(loss, tuple):
            return (loss[0] * self.loss_scale, *loss[1:])
        return loss * self.loss_scale

    def _tokens(self, inputs: dict[str, Any]) -> int | None:
        """Return the number of labelled tokens in this rank's rows, or None if rows have labels instead of tokens."""
        labels = inputs.get("shift_labels", inputs.get("labels"))
        if not isinstance(labels, Tensor) or labels.dim() < 2 or torch.is_floating_point(labels):
            return None
        named = type(self.model).__name__ in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()
        if "shift_labels" not in inputs and (self._loss_shifts_labels or named):
            labels = labels[..., 1:]  # the first token of a text is not predicted
        return int((labels != _IGNORED).sum())


class _BalanceCallback(TrainerCallback):  # type: ignore[misc]
    """Callback that makes DDP measure times, and moves the sampler to the position of a checkpoint.

    When the Trainer resumes, it draws the batches before that position and drops them.
    """

    def __init__(self, trainer: BalancedTrainer) -> None:
        self._trainer, self._dropped = trainer, 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        batches, model = self._trainer.batches, self._trainer.model_wrapped
        assert batches is not None
        if isinstance(model, DistributedDataParallel):
            batches.measure(model)
        elif batches.ranks > 1:
            raise ValueError(
                f"BalancedTrainer supports only DistributedDataParallel, but {batches.ranks} ranks train with "
                f"{type(model).__name__}; on a machine without GPUs pass use_cpu=True to TrainingArguments"
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
