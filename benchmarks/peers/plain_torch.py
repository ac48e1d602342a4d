"""Training as in torch's tutorials: DistributedDataParallel around an nn.LSTM, started by torchrun.

Options are a JSON object: `data`, `global_batch`, `epochs`, the model's `embedding`, `hidden`, `layers` and `pooling`,
`packed` (packed sequences, or rows padded to the longest of the batch), `precision`, `threads`. Rank 0 prints rows per
second without the first steps.

It is fast: rows in memory (or on the GPU), one fused optimiser, no data loader. It does less than Shoal: no mean of the
words' vectors, no dropout of words or of the vectors' dimensions, one output for all ratings, no clipping.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from corpus.text import FIRST_WORD

_WARM_UP = 5


class Plain(nn.Module):
    """LSTM of Shoal's model with these settings, with the same pooling of states, and a head of the same size."""

    def __init__(self, words: int, options: Mapping[str, Any]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, options["embedding"], padding_idx=0)
        self.lstm = nn.LSTM(
            options["embedding"], options["hidden"], options["layers"], dropout=0.3 * (options["layers"] > 1)
        )
        self.head = nn.Sequential(nn.Linear(options["hidden"], 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 1))
        self.packed, self.pooling = options["packed"], options["pooling"]

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        vectors = self.embedding(tokens.t())
        if self.packed:
            states, _ = self.lstm(pack_padded_sequence(vectors, lengths.cpu(), enforce_sorted=False))
            states, _ = pad_packed_sequence(states)
        else:
            states, _ = self.lstm(vectors)
        if self.pooling == "last":
            pooled = states[lengths - 1, torch.arange(len(lengths), device=states.device)]
        else:
            real = torch.arange(len(states), device=states.device)[:, None] < lengths
            pooled = (states * real[:, :, None]).sum(0) / lengths[:, None]
        logits: Tensor = self.head(pooled)[:, 0]
        return logits


def main() -> None:
    """Take part in the run that the command line describes."""
    options = json.loads(sys.argv[1])
    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    torch.set_num_threads(options["threads"])
    from corpus.dataset import open_dataset

    with open_dataset(options["data"]) as dataset:
        first = len(dataset.train) // 20  # earlier rows are for validation
        columns = [dataset.train.arrays[name][first:] for name in ("tokens", "lengths", "labels")]
        words = len(dataset.vocabulary) + FIRST_WORD
    rate = train(options, *columns, words=words, device=device)
    if dist.get_rank() == 0:
        print(json.dumps({"rate": rate}))  # noqa: T201
    dist.destroy_process_group()


def train(
    options: Mapping[str, Any],
    tokens: npt.NDArray[Any],
    lengths: npt.NDArray[Any],
    labels: npt.NDArray[Any],
    *,
    words: int,
    device: torch.device,
) -> float:
    """Train as one of the ranks on tokens (N, L), lengths (N,) and labels (N,). Return rows per second of all ranks."""
    rank, size = dist.get_rank(), dist.get_world_size()
    own = torch.from_numpy(tokens.astype(np.int32)).to(device)
    own_lengths = torch.from_numpy(lengths.astype(np.int64)).to(device)
    own_labels = torch.from_numpy(labels.astype(np.float32)).to(device)
    model = DistributedDataParallel(Plain(words, options).to(device))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    precision = getattr(torch, options["precision"])
    generator = torch.Generator().manual_seed(0)
    share, seen, start = options["global_batch"] // size, 0, 0.0
    steps = 0
    for _ in range(options["epochs"]):
        order = torch.randperm(len(own_labels), generator=generator).to(device)
        for begin in range(0, len(own_labels) - options["global_batch"] + 1, options["global_batch"]):
            if steps == _WARM_UP:
                _finish(device)
                start, seen = time.perf_counter(), 0
            numbers = order[begin + rank * share : begin + (rank + 1) * share]
            long = own_lengths[numbers]
            with torch.autocast(device.type, precision, enabled=precision != torch.float32):
                logits = model(own[numbers][:, : int(long.max())], long)
            loss = F.binary_cross_entropy_with_logits(logits.float(), own_labels[numbers])
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
            seen += share * size
            steps += 1
    _finish(device)
    return seen / (time.perf_counter() - start)


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    dist.barrier()


if __name__ == "__main__":
    main()
