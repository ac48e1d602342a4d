"""NCCL on one rank, in the trainer's process group: the all-reduce, and one complete run.

A run on one rank skips the all-reduce. So the all-reduce is also called separately.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist

from benchmarks.gpu.checks import new_model
from benchmarks.gpu.part import Outcome, deviation, milliseconds, print_progress
from benchmarks.gpu.rows import make_data, make_rows
from benchmarks.gpu.training import single_rank, train

_LEARNED = 0.7
"""Smallest balanced accuracy. A model that predicts only one class has 0.5."""


@dataclass(frozen=True)
class Sizes:
    """Amount of training."""

    rows: int = 200_000
    global_batch: int = 1024
    epochs: int = 2


def measure(device: torch.device, sizes: Sizes) -> Outcome:
    """Measure the all-reduce of a model's gradients, and check that a run learns."""
    with single_rank(device) as ranks:
        backend = dist.distributed_c10d._get_default_group()._get_backend(device).name()
        print_progress(f"{backend} adds up the ranks' gradients on this device")
        off, took = _check_sum(device)
        print_progress(f"all-reduce of the reference's gradients: {took:.3f} ms, off by {off:.1e}")
        held_out = max(100, sizes.rows // 20)
        data = make_data(make_rows(sizes.rows + 2 * held_out, device), validation=held_out, test=held_out)
        summary = train(data, ranks, global_batch=sizes.global_batch, epochs=sizes.epochs)
    rate, learned = summary["samples_per_second"], summary["balanced_accuracy"]
    said = f"{backend}; trained in {summary['precision']} at {rate:,.0f} rows/s to a balanced accuracy of {learned:.2f}"
    if off:
        said += "; sums are wrong"
    return Outcome(
        said=said,
        figures={"backend": backend, "sums": [off, took], "summary": summary},
        failed=bool(off) or learned < _LEARNED,
    )


def _check_sum(device: torch.device) -> tuple[float, float]:
    """Return the deviation of a sum over one rank from that rank's numbers, and the milliseconds of a sum."""
    model = new_model("reference", device)
    flat = torch.randn(sum(each.numel() for each in model.parameters()) + 8, device=device) / 100
    expected = flat.clone()
    dist.all_reduce(flat)
    return deviation(flat, expected), milliseconds(lambda: dist.all_reduce(flat), device)
