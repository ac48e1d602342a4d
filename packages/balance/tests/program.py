"""Example user program that trains with `shoal_balance`, either with DDP or with its own all-reduce.

The argument is a JSON object with OPTIONS and the file for results (`output`). The program writes the losses of all
steps, and a state from which it can continue.
"""

import gc
import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import shoal_balance.torch
import torch
import torch.distributed as dist
from shoal_balance.torch import BalancedBatches
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

ROWS = 1000
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


class FakeClock:
    """Replacement for the module `time` that makes each step of this rank take a given time."""

    now = 0.0

    def perf_counter(self):
        return self.now


CLOCK = FakeClock()
shoal_balance.torch.time = CLOCK


# `slow` is the compute time per row of each rank, in seconds; if it is empty, no time passes. With `scaled` the program
# uses a GradScaler, and the gradients of the third step overflow on the last rank.
OPTIONS = {"epochs": 2, "slow": [], "workers": 0, "own_all_reduce": False, "accumulate": 1, "clip": 0.0}
OPTIONS |= {"scaled": False, "resume": "", "stop_after": 10**9}


class Program:
    def __init__(self, options):
        self.options = options
        torch.manual_seed(0)
        inputs = torch.randn(ROWS, 12)
        labels = (inputs[:, :3].sum(1, keepdim=True) > 0).float()
        self.plain = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 1))
        self.batches = BalancedBatches(ROWS, global_batch=64, seed=3, rebalance_every=5)
        self.loader = DataLoader(TensorDataset(inputs, labels), batch_sampler=self.batches, num_workers=options.workers)
        self.optimiser = torch.optim.SGD(self.plain.parameters(), lr=0.5, momentum=0.5)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, enabled=options.scaled)
        self.losses = []
        self.shares = []
        if options.resume:
            saved = torch.load(options.resume)
            for part, state in saved.items():
                getattr(self, part).load_state_dict(state)
        self.model = self.plain
        if WORLD > 1 and not options.own_all_reduce:
            self.model = summed = DistributedDataParallel(self.plain)
            self.batches.measure(summed)

    def train(self):
        while self.batches.epoch < self.options.epochs and len(self.losses) < self.options.stop_after:
            for number, (inputs, labels) in enumerate(self.loader, 1):
                sends = number % self.options.accumulate == 0 or number == len(self.batches)
                with self.batches.step() as step:
                    loss = self.compute(step, inputs, labels, sends=sends)
                self.record(loss.item() * step.loss_scale / WORLD)
                if sends:
                    self.update()
                if len(self.losses) == self.options.stop_after:
                    return

    def compute(self, step, inputs, labels, *, sends):
        waits = isinstance(self.model, DistributedDataParallel) and not sends
        with self.model.no_sync() if waits else nullcontext():
            loss = binary_cross_entropy_with_logits(self.model(inputs), labels)
            CLOCK.now += self.options.slow[RANK] * step.rows if self.options.slow else 0.0
            scaled = self.scaler.scale(loss * step.loss_scale / self.options.accumulate)
            overflows = self.options.scaled and step.number == 2 and RANK == WORLD - 1
            (scaled * float("inf") if overflows else scaled).backward()
        if self.options.own_all_reduce:
            step.computed()
            for each in self.plain.parameters():
                dist.all_reduce(each.grad)
                each.grad /= WORLD
        return loss

    def update(self):
        self.scaler.unscale_(self.optimiser)
        if self.options.clip:
            nn.utils.clip_grad_norm_(self.plain.parameters(), self.options.clip)
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.optimiser.zero_grad()

    def record(self, part):
        loss = torch.tensor(part)
        if WORLD > 1:
            dist.all_reduce(loss)
        self.losses.append(loss.item())
        self.shares.append(self.batches.shares)

    def write(self):
        path = Path(self.options.output)
        parts = ("plain", "optimiser", "batches")
        torch.save({part: getattr(self, part).state_dict() for part in parts}, path.with_suffix(".pt"))
        path.with_suffix(".json").write_text(json.dumps({"losses": self.losses, "shares": self.shares}))


def main(options):
    torch.set_num_threads(1)
    if WORLD > 1:
        dist.init_process_group("gloo")
    program = Program(SimpleNamespace(**{**OPTIONS, **options}))
    program.train()
    if RANK == 0:
        program.write()
    if WORLD > 1:
        # gloo's threads end with their group. A thread that still frees a tensor when Python exits aborts the rank.
        del program
        gc.collect()
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
