"""`BalancedBatches`, a batch sampler for any PyTorch program with `torch.distributed`.

A global batch has the same rows for any number of ranks. Each rank computes a part of the batch in proportion to its
measured speed, so that the ranks need not wait for each other:

    batches = BalancedBatches(len(dataset), global_batch=256)
    loader = DataLoader(dataset, batch_sampler=batches)
    model = DistributedDataParallel(model)
    batches.measure(model)
    for epoch in range(epochs):
        for inputs, labels in loader:
            with batches.step() as step:
                loss = loss_function(model(inputs), labels)  # the mean over this rank's rows
                (loss * step.loss_scale).backward()
            optimiser.step()
            optimiser.zero_grad()

Multiply the loss by `loss_scale`, so that DDP's mean over the ranks is the mean over the rows of the global batch.
"""

import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import Sampler

from shoal_balance.balancers import FIRST_REBALANCES
from shoal_balance.order import BatchOrder
from shoal_balance.split import FloatArray
from shoal_balance.split_schedule import SplitSchedule


@dataclass(eq=False)
class Step:
    """One training step on this rank."""

    number: int
    """Index of the step, counted from 0 over all epochs."""
    rows: int
    """Number of rows that this rank computes."""
    of: int
    """Number of rows of the global batch."""
    loss_scale: float
    """Factor by which to multiply the mean loss of this rank's rows before `backward`."""
    _started: float = 0.0
    _seconds: float = 0.0
    _events: list[Any] = field(default_factory=list)

    def computed(self) -> None:
        """Record that this rank has computed its own gradients. If called several times, the last call counts.

        Call it before your own all-reduce. With DDP you need not call it, because `BalancedBatches.measure` does.
        """
        self._seconds = time.perf_counter() - self._started
        if self._events:
            self._events[1].record()

    def seconds(self) -> float:
        """Return the compute time of this rank in seconds, or 0 while the GPU has not finished the step."""
        if not self._events or not self._seconds:
            return self._seconds
        return self._events[0].elapsed_time(self._events[1]) / 1000 if self._events[1].query() else 0.0


class _CpuAllReduceHook:
    """DDP communication hook that averages gradients over the ranks with gloo.

    PyTorch's own hook runs Python code in a gloo thread when an all-reduce completes. If the program exits at that
    moment, it aborts, because CPython stops threads by an exception that C++ does not expect.
    """

    def __init__(self, group: Any) -> None:
        self._group = group
        self._sent: list[tuple[Any, torch.futures.Future[Tensor], Tensor]] = []

    def __call__(self, _state: Any, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:  # type: ignore[name-defined]
        buffer = bucket.buffer().div_(self._group.size())
        mean = torch.futures.Future[Tensor]()
        self._sent.append((dist.all_reduce(buffer, group=self._group, async_op=True), mean, buffer))
        if bucket.is_last():  # after the last bucket, DDP would wait for all buckets anyway
            for work, future, part in self._sent:
                work.wait()
                future.set_result(part)
            self._sent.clear()
        return mean


class BalancedBatches(Sampler[list[int]]):
    """Batch sampler that yields this rank's row numbers of each global batch, for a DataLoader's `batch_sampler`.

    Each iteration is one epoch. After an interrupted iteration or `load_state_dict`, the next iteration continues from
    that position.
    """

    def __init__(
        self,
        rows: int,
        *,
        global_batch: int,
        seed: int = 0,
        rebalance_every: int = 10,
        max_rows: int | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        """Create the sampler. Call it on every rank.

        Args:
            rows: Number of rows of the dataset.
            global_batch: Number of rows of a step over all ranks, at least one for each rank.
            seed: Seed of the random order.
            rebalance_every: Number of steps after which the ranks exchange their times and rebalance.
            max_rows: Largest number of rows that fits into this rank's memory (default: no limit). Ranks may differ.
            device: Device of this rank (default: the current GPU, or the CPU if there is no GPU).

        Raises:
            ValueError: A number is below 1, or the global batch has fewer rows than there are ranks. Also raised if the
                batch has more rows than the sum of `max_rows` over all ranks.
        """
        world = dist.get_world_size() if dist.is_initialized() else 1
        if rows < 1 or global_batch < world or rebalance_every < 1 or (max_rows is not None and max_rows < 1):
            raise ValueError(
                f"rows ({rows}), max_rows ({max_rows}) and rebalance_every ({rebalance_every}) must be at least 1, and "
                f"global_batch ({global_batch}) at least the number of ranks ({world})"
            )
        self._order = BatchOrder(rows=rows, global_batch=global_batch, seed=seed)
        self._rank, self._world = (dist.get_rank(), world) if world > 1 else (0, 1)
        self._group = dist.new_group(backend="gloo") if world > 1 and dist.get_backend() != "gloo" else None
        self._every = rebalance_every
        cuda = torch.cuda.is_available() if device is None else torch.device(device).type == "cuda"
        self._makes_events = cuda
        most = _gather(max_rows or global_batch, world, self._group).astype(np.int64)
        if most.sum() < global_batch:
            raise ValueError(
                f"a global batch of {global_batch} rows does not fit into the memory of the ranks (max_rows "
                f"{most.tolist()}); make global_batch smaller, and accumulate gradients"
            )
        self._schedule = SplitSchedule(self._order, most, every=rebalance_every)
        self._done = self._given = 0
        self._ahead: deque[Step] = deque()
        self._past: list[Step] = []
        self._now: Step | None = None

    def __len__(self) -> int:
        """Return the number of global batches per epoch."""
        return self._order.steps

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self._world

    @property
    def epoch(self) -> int:
        """Epoch of the next step, counted from 0."""
        return self._done // self._order.steps

    def __iter__(self) -> Iterator[list[int]]:
        self._given = self._done
        self._ahead.clear()
        epoch = self.epoch
        for number in range(self._done, (epoch + 1) * self._order.steps):
            batch = self._order.batch(epoch, number % self._order.steps)
            split = self._schedule.split(number, len(batch))
            begin = int(split[: self._rank].sum())
            rows = int(split[self._rank])
            self._given = number + 1
            self._ahead.append(Step(number, rows, len(batch), self._world * rows / len(batch)))
            # A rank without rows must still take part in each collective, so it computes one row with loss_scale 0.
            yield batch[begin : begin + rows].tolist() if rows else batch[:1].tolist()

    @contextmanager
    def step(self) -> Iterator[Step]:
        """Return the context of one step: the forward and backward pass of the DataLoader's next batch.

        Raises RuntimeError if the DataLoader has yielded no batch for the step.
        """
        if not self._ahead:
            raise RuntimeError("there is no batch for this step: call step() once for each batch of the DataLoader")
        now = self._now = self._ahead.popleft()
        if self._makes_events:
            now._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call]
            now._events[0].record()
        now._started = time.perf_counter()
        try:
            yield now
        finally:
            self._now = None
        if not now._seconds:  # no all-reduce: gradients are accumulated, or there is only one rank
            now.computed()
        self._past.append(now)
        self._done += 1
        if self._world > 1 and (self._done in FIRST_REBALANCES or self._done % self._every == 0):
            self._rebalance()

    def skip_to(self, number: int) -> None:
        """Skip to the step with this index, counted over all epochs. It must be in the current epoch.

        Call this in a program that resumes by drawing and dropping batches, because dropped batches have no steps.
        Raises ValueError for a step of a different epoch or before the current step.
        """
        if number < self._done or number // self._order.steps != self.epoch:
            raise ValueError(
                f"step {number} is out of range: skip_to accepts steps from {self._done} to the end of its epoch"
            )
        while self._ahead and self._ahead[0].number < number:
            self._ahead.popleft()
        self._done = number

    def measure(
        self, model: DistributedDataParallel, hook: Callable[..., Any] | None = None, state: Any = None
    ) -> None:
        """Measure in each step how long this rank computes its own gradients, before DDP waits for the other ranks.

        This registers a communication hook on `model`, and DDP accepts only one hook. If you have your own hook, pass
        it here with its `state` (default: DDP's all-reduce).
        """
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

        inner = hook or (allreduce_hook if next(model.parameters()).is_cuda else _CpuAllReduceHook(model.process_group))

        def timed(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:  # type: ignore[name-defined]
            if bucket.is_last() and self._now is not None:
                self._now.computed()
            future: torch.futures.Future[Tensor] = inner(state, bucket)
            return future

        model.register_comm_hook(state, timed)
        _warn_of_batch_normalisation(model)

    @property
    def shares(self) -> list[int]:
        """Number of rows for each rank in a full global batch, after the latest rebalance."""
        return self._schedule.shares

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the training run as a dictionary. It is the same on every rank, and can be loaded by
        any number of ranks."""
        return {"done": self._done, **self._identity, "shares": self.shares}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state. It may come from a run with a different number of ranks.

        Raises ValueError if the state's `rows`, `global_batch` or `seed` differ from this sampler's.
        """
        if wrong := [name for name, each in self._identity.items() if state.get(name) != each]:
            name = wrong[0]
            raise ValueError(f"the state has {name} {state.get(name)}, but this sampler has {self._identity[name]}")
        self._done = self._given = int(state["done"])
        self._ahead.clear()
        self._past.clear()
        self._schedule.restart(state["shares"] if len(state["shares"]) == self._world else [1] * self._world)

    @property
    def _identity(self) -> dict[str, Any]:
        order = self._order
        return {"rows": order.rows, "global_batch": order.global_batch, "seed": order.seed}

    def _rebalance(self) -> None:
        """Exchange the times of the last steps, and choose new splits. The new splits apply from the first step that no
        rank has drawn yet."""
        if self._past[-1]._events:
            self._past[-1]._events[1].synchronize()  # the GPU may be many steps behind
        own = [[step.rows, step.seconds()] for step in self._past]
        self._past.clear()
        gathered = _gather([[self._given, 0.0], *own], self._world, self._group)  # (ranks, 1 + steps, 2)
        self._schedule.rebalance(
            gathered[:, 1:, 0].astype(np.int64),
            gathered[:, 1:, 1],
            done=self._done,
            begin=int(gathered[:, 0, 0].max()),
        )


def _gather(own: Any, world: int, group: Any) -> FloatArray:
    """Return the numbers of all ranks, (ranks, ...). `own` must have the same shape on each rank.

    `world`: the number of ranks. `group`: their process group, or None for the default group.
    """
    sent = torch.tensor(own, dtype=torch.float64)
    received = [torch.empty_like(sent) for _ in range(world)]
    if world == 1:
        received = [sent]
    else:
        dist.all_gather(received, sent, group=group)
    return torch.stack(received).numpy()


def _warn_of_batch_normalisation(model: nn.Module) -> None:
    """Warn the caller of the caller if a module computes statistics over the rows of each rank."""
    if any(_has_per_rank_statistics(each) for each in model.modules()):
        warnings.warn(
            "batch normalisation computes statistics over the rows of each rank, and ranks now have different "
            "numbers of rows; use layer or group normalisation (SyncBatchNorm waits for all ranks in each layer, "
            "so all ranks look equally slow)",
            stacklevel=3,
        )


def _has_per_rank_statistics(module: nn.Module) -> bool:
    return isinstance(module, nn.modules.batchnorm._BatchNorm) and not isinstance(module, nn.SyncBatchNorm)
