"""One rank of several that only add up a model's gradients, to measure the time of a sum.

Started by torchrun with a JSON object: `data`, `global_batch`, `seed`, `options` of the model in place of the
reference's, `exchange` (`rows`, or `ddp` for all gradients as they are) and `bits` of a number. Rank 0 prints the bytes
of its gradients, and the median seconds of a sum.
"""

import json
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch
import torch.distributed as dist

from corpus.text import FIRST_WORD
from trainer.classification import models
from trainer.classification.data import load_data
from trainer.clock import StepTimer
from trainer.config import TrainConfig
from trainer.distributed.collectives import in_half_precision
from trainer.distributed.exchange import GradientExchange
from trainer.distributed.ranks import batch_scheduling
from trainer.options.presets import PRESETS
from trainer.order import BatchOrder

_TRIALS = 40


def main() -> None:
    """Take part in the run that the command line describes."""
    asked = json.loads(sys.argv[1])
    with batch_scheduling():  # as the trainer
        dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rows = load_data(Path(asked["data"]))
    config = TrainConfig(data=Path(), output=Path(), **{**PRESETS["reference"], **asked["options"]})
    model = models.build("lstm", config.model_settings("lstm", words=len(rows.vocabulary) + FIRST_WORD, outputs=1))
    (table,) = model.tables
    order = BatchOrder(rows=len(rows.training), global_batch=asked["global_batch"], seed=asked["seed"])
    everything = torch.zeros(sum(parameter.numel() for parameter in model.parameters()))
    timer, bits = StepTimer(), asked["bits"]
    exchange = GradientExchange(model, model.tables, timer=timer, bits=bits)
    seconds, sizes = [], []
    for trial in range(_TRIALS):
        words = rows.training.ids(order.batch(0, trial % (order.steps - 1)), len(table))
        touched = [words] if exchange.is_sparse_cheaper([words]) else None
        model.zero_grad()
        timer.begin(1)
        dist.barrier()
        start = time.perf_counter()
        if asked["exchange"] == "ddp":
            dist.all_reduce(everything if bits == 32 else in_half_precision(everything, dist.get_world_size()))
        else:
            exchange.reduce(step=trial, size=1, touched=touched, loss=torch.zeros(()), rows=1, stop=False, save=False)
        seconds.append(time.perf_counter() - start)
        left_out = table.numel() - len(words) * table.shape[1] if touched and asked["exchange"] == "rows" else 0
        sizes.append(bits // 8 * (len(everything) - left_out))
    if dist.get_rank() == 0:
        print(json.dumps({"bytes": float(np.median(sizes)), "alone": median(seconds)}))  # noqa: T201
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
