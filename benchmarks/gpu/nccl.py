"""NCCL on one rank, in the process group that the trainer makes: the sums, and one run from beginning to end.

A run on one rank does not test its all-reduce, because one rank leaves it out. So the all-reduce is also called by
itself.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist

from benchmarks.gpu.checks import new_model
from benchmarks.gpu.part import Outcome, deviation, milliseconds, print_progress
from benchmarks.gpu.rows import make_data, make_rows
from benchmarks.gpu.training import single_rank, train
from trainer.clock import StepTimer
from trainer.distributed.exchange import GradientExchange

_LEARNT = 0.7
"""The least balanced accuracy; a model that predicts one class only has 0.5."""
_ROUNDING = {32: 0.0, 16: 1e-3}


@dataclass(frozen=True)
class Sizes:
    """How much is trained."""

    rows: int = 200_000
    global_batch: int = 1024
    epochs: int = 2


def measure(device: torch.device, sizes: Sizes) -> Outcome:
    """The all-reduce of a model's gradients in 32 and 16 bits, and a run that has to learn."""
    with single_rank(device) as ranks:
        backend = dist.distributed_c10d._get_default_group()._get_backend(device).name()
        print_progress(f"{backend} adds up the ranks' gradients on this device")
        sums = {bits: _summed(device, bits) for bits in _ROUNDING}
        for bits, (off, took) in sums.items():
            print_progress(f"all-reduce of the reference's gradients in {bits} bits: {took:.3f} ms, off by {off:.1e}")
        held_out = max(100, sizes.rows // 20)
        data = make_data(make_rows(sizes.rows + 2 * held_out, device), validation=held_out, test=held_out)
        summary = train(data, ranks, global_batch=sizes.global_batch, epochs=sizes.epochs)
    rate, learnt = summary["samples_per_second"], summary["balanced_accuracy"]
    wrong = [bits for bits, (off, _) in sums.items() if not off <= _ROUNDING[bits]]
    said = f"{backend}; trained in {summary['precision']} at {rate:,.0f} rows/s to a balanced accuracy of {learnt:.2f}"
    if wrong:
        said += f"; sums in {wrong} bits are wrong"
    return Outcome(
        said=said,
        figures={"backend": backend, "sums": {bits: list(each) for bits, each in sums.items()}, "summary": summary},
        failed=bool(wrong) or learnt < _LEARNT,
    )


def _summed(device: torch.device, bits: int) -> tuple[float, float]:
    """The deviation of a sum over one rank from that rank's numbers, and the milliseconds of a sum."""
    model = new_model("reference", device)
    exchange = GradientExchange(model, model.tables, timer=StepTimer(), bits=bits)
    flat = torch.randn(sum(each.numel() for each in model.parameters()) + 8, device=device) / 100
    expected = flat.clone()
    exchange._add_up(flat, 8)
    return deviation(flat, expected), milliseconds(lambda: exchange._add_up(flat, 8), device)
