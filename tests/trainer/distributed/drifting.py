"""A program for two ranks: the trainer, whose rank 1 has word vectors, and moments, off by their last bit at the end of
each epoch.

Each rank leaves a file RANK-EPOCH beside the record, for the beginning of each evaluation: the bytes of its weights,
and of its optimiser's moments.
"""

import itertools
import os
import sys
from pathlib import Path

import torch

from trainer.__main__ import main
from trainer.computing.optimiser import Optimiser
from trainer.distributed import drift
from trainer.distributed.ranks import Ranks

OUTPUT = Path(sys.argv[sys.argv.index("--output") + 1])
mend, epochs = drift.synchronise, itertools.count()


def nudged(model: torch.nn.Module, optimiser: Optimiser, ranks: Ranks) -> float | None:
    if ranks.rank == 1:
        for tensor in (model.embedding.weight.data, optimiser.state()["first.0"]):
            tensor.copy_(torch.nextafter(tensor, torch.full_like(tensor, torch.inf)))
    apart = mend(model, optimiser, ranks)
    tensors = (*model.state_dict().values(), *optimiser.state().values())
    content = b"".join(tensor.numpy().tobytes() for tensor in tensors)
    (OUTPUT / f"{ranks.rank}-{next(epochs)}").write_bytes(content)
    return apart


drift.synchronise = nudged
status = main()
if status:
    os._exit(status)
sys.exit(status)
