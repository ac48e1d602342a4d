"""A program for three ranks, which compares the gradients of unequal shares with those of one process.

Large shares use two threads. The program writes a JSON object to the file in its argument. It maps cases, such as
"float32 7/41/16 clipped", to the largest deviation relative to the largest gradient.
"""

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from shoal_balance import stratified_rows

from trainer.classification import models
from trainer.classification.losses import Loss, Scale
from trainer.classification.models.classifier import Classifier
from trainer.classification.rows import TextRows, WordDropout
from trainer.classification.task import text_gradients
from trainer.clock import StepTimer
from trainer.computing.threads import Threads
from trainer.distributed.exchange import GradientExchange

SETTINGS = {
    "words": 300,
    "embedding": 20,
    "hidden": 8,
    "layers": 2,
    "pooling": "mean+max+words",
    "dropout": 0.5,
    "embedding_dropout": 0.5,
    "outputs": 1,
}
SPLITS = ((7, 41, 16), (1, 62, 1), (0, 40, 24), (64, 0, 0))
LOSS = Loss(kind="bce", scale=Scale(0, 1, 1), positive_weight=0.3)
CLIP_NORM = 0.05  # a fraction of the gradient's norm; each rank's own part exceeds it, too


def new_model(dtype: torch.dtype, seed: int) -> Classifier:
    torch.manual_seed(seed)
    return models.build("lstm", SETTINGS).to(dtype)


def some_rows() -> TextRows:
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 13, 64).astype(np.uint16)
    tokens = np.where(np.arange(12) < lengths[:, None], generator.integers(1, 200, (64, 12)), 0).astype(np.uint16)
    labels = generator.integers(0, 2, 64).astype(np.uint8)
    return TextRows(tokens=tokens, lengths=lengths, labels=labels, ratings=labels)


def gradients(model, rows, split, exchange, clip_norm, timer):
    model.zero_grad()
    words, threads = WordDropout(0.3, rows.tokens.shape[1], seed=0), Threads(1 if exchange is None else 2)
    compute = text_gradients(
        model, rows, loss=LOSS, device=torch.device("cpu"), words=words, timer=timer, threads=threads
    )
    everything = np.arange(64)
    if exchange is None:
        timer.begin(64)
        compute(everything, 64, 0)
        if clip_norm:
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
            assert norm > 4 * clip_norm
    else:
        rank = dist.get_rank()
        timer.begin(split[rank])
        loss = compute(stratified_rows(rows.lengths, np.array(split), rank), 64, 0)
        exchange.reduce(
            step=0,
            size=64,
            touched=[rows.ids(everything, SETTINGS["words"])],
            loss=loss,
            rows=split[rank],
            stop=rank == 1,
            save=False,
        )
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def of_one_process(model: Classifier, rows: TextRows) -> dict[float, torch.Tensor]:
    """Return the gradients of all rows, and the norm to which they are clipped."""
    return {norm: gradients(model, rows, (), None, norm, StepTimer()) for norm in (0.0, CLIP_NORM)}


def deviation(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the largest deviation relative to the largest gradient."""
    return float((found - expected).abs().max() / expected.abs().max())


def main() -> None:
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rows, found = some_rows(), {}
    for dtype in (torch.float32, torch.float64):
        alone = new_model(dtype, seed=0)
        shared = new_model(dtype, seed=dist.get_rank())  # only rank 0 starts with the same weights
        expected = of_one_process(alone, rows)
        for split, clip_norm in itertools.product(SPLITS, (0.0, CLIP_NORM)):
            timer = StepTimer()
            exchange = GradientExchange(shared, [shared.embedding.weight], timer=timer, clip_norm=clip_norm)
            found_here = gradients(shared, rows, split, exchange, clip_norm, timer)
            report = exchange.drain()
            assert report.stop
            assert report.rows.sum() == report.computed.sum() == 64
            assert report.rows.tolist() == list(split)
            assert report.is_complete
            worst = torch.tensor([deviation(found_here, expected[clip_norm])])
            dist.all_reduce(worst, op=dist.ReduceOp.MAX)
            name = f"{dtype} {'/'.join(map(str, split))} {'clipped' if clip_norm else 'whole'}"
            found[name.removeprefix("torch.")] = float(worst)
    if dist.get_rank() == 0:
        Path(sys.argv[1]).write_text(json.dumps(found))
    dist.destroy_process_group()


main()
