"""One rank of several that train a small model by DDP with `shoal_balance`, and sleep as long as a GPU would compute.

Started by torchrun with a JSON object: the `rates` of the ranks in rows a second, the `global_batch`, how many `steps`,
and the `shares` of the ranks (null: balanced). Rank 0 prints the `seconds` of the later half of the steps, and the rows
of each rank in the last one (`split`).
"""

import json
import sys
import time
from typing import Any

import torch
import torch.distributed as dist
from shoal_balance.torch import BalancedBatches
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


class _Fixed(BalancedBatches):
    """Shares that stay as they are."""

    def _rebalance(self) -> None:
        self._past.clear()


def main() -> None:
    """Take part in the run that the command line describes."""
    asked = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, batch, steps = dist.get_rank(), asked["global_batch"], asked["steps"]
    kind = BalancedBatches if asked["shares"] is None else _Fixed
    batches = kind(batch * steps, global_batch=batch)
    if asked["shares"] is not None:
        batches.load_state_dict({**batches.state_dict(), "shares": asked["shares"]})
    data = TensorDataset(torch.zeros(batch * steps, 8))
    model = DistributedDataParallel(nn.Linear(8, 1))
    batches.measure(model)
    began = _train(model, batches, DataLoader(data, batch_sampler=batches), asked["rates"][rank], steps // 2)
    seconds = time.perf_counter() - began
    overhead = _overhead(batch)
    if rank == 0:
        print(json.dumps({"seconds": seconds, "split": batches.shares, "overhead": overhead}))  # noqa: T201
    dist.destroy_process_group()


def _train(model: nn.Module, batches: BalancedBatches, loader: "DataLoader[Any]", rate: float, from_step: int) -> float:
    """Take all steps; returns when a step began, by the clock."""
    began = 0.0
    for number, (rows,) in enumerate(loader):
        if number == from_step:
            dist.barrier()
            began = time.perf_counter()
        with batches.step() as step:
            loss = model(rows).mean()
            time.sleep(step.rows / rate)
            (loss * step.loss_scale).backward()
    dist.barrier()
    return began


def _overhead(batch: int) -> float:
    """The seconds that the sampler, the step and the exchange of times take of a step, in which nothing is computed."""
    steps = 500
    batches = BalancedBatches(batch * steps, global_batch=batch)
    for _ in range(2):  # the first epoch loads what the second one needs
        dist.barrier()
        began = time.perf_counter()
        for _ in batches:
            with batches.step():
                pass
    return (time.perf_counter() - began) / steps


if __name__ == "__main__":
    main()
