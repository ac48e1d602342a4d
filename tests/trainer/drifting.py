"""A program for two ranks: the trainer, whose rank 1 has word vectors, and moments, off by their last bit before the
last step of each epoch, the thirtieth.

Each rank leaves a file RANK-EPOCH beside the record, for the beginning of each evaluation: the bytes of its weights,
and of its optimiser's moments.
"""

import os
import sys

import torch

from trainer.__main__ import main
from trainer.loop import _Run

step, evaluate = _Run._step, _Run._evaluate_epoch


def nudged(run: _Run) -> None:
    if run.ranks.rank == 1 and run.progress.step == 29:
        for tensor in (run.model.embedding.weight.data, run.optimiser.state()["first.0"]):
            tensor.copy_(torch.nextafter(tensor, torch.full_like(tensor, torch.inf)))
    step(run)


def told(run: _Run) -> None:
    tensors = (*run.model.state_dict().values(), *run.optimiser.state().values())
    content = b"".join(tensor.numpy().tobytes() for tensor in tensors)
    (run.config.output / f"{run.ranks.rank}-{run.progress.epoch}").write_bytes(content)
    evaluate(run)


_Run._step, _Run._evaluate_epoch = nudged, told
status = main()
if status:
    os._exit(status)
sys.exit(status)
