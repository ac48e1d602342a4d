"""One rank of several that only sum the reference model's gradients, to measure the time of a sum.

Started by torchrun with a JSON object: `data`, `global_batch`, `seed`, and `bits` of a number; null: all gradients
dense. Rank 0 prints the bytes of its gradients and the median seconds of a sum.
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
from trainer.distributed.exchange import GradientExchange
from trainer.distributed.ranks import batch_scheduling
from trainer.order import BatchOrder
from trainer.presets import PRESETS

_TRIALS = 40


def main() -> None:
    """Take part in the run that the command line describes."""
    asked = json.loads(sys.argv[1])
    with batch_scheduling():  # as the trainer
        dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rows = load_data(Path(asked["data"]))
    config = TrainConfig(data=Path(), output=Path(), **PRESETS["reference"])
    model = models.build("lstm", config.model_settings("lstm", words=len(rows.vocabulary) + FIRST_WORD, outputs=1))
    (table,) = model.tables
    order = BatchOrder(rows=len(rows.training), global_batch=asked["global_batch"], seed=asked["seed"])
    everything = torch.zeros(sum(parameter.numel() for parameter in model.parameters()))
    timer = StepTimer()
    exchange = GradientExchange(model, model.tables, timer=timer, bits=asked["bits"] or 32)
    seconds, sizes = [], []
    for trial in range(_TRIALS):
        words = rows.training.ids(order.batch(0, trial % (order.steps - 1)), len(table))
        model.zero_grad()
        timer.begin(1)
        dist.barrier()
        start = time.perf_counter()
        if asked["bits"] is None:
            dist.all_reduce(everything)
            sizes.append(4 * len(everything))
        else:
            exchange.reduce(step=trial, size=1, touched=[words], loss=torch.zeros(()), rows=1, stop=False, save=False)
            dense = len(everything) - table.numel()
            sizes.append(asked["bits"] // 8 * (dense + len(words) * table.shape[1]))
        seconds.append(time.perf_counter() - start)
    if dist.get_rank() == 0:
        print(json.dumps({"bytes": float(np.median(sizes)), "seconds": median(seconds)}))  # noqa: T201
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
