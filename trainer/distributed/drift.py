"""Drift of weights between ranks, which is measured and corrected once per epoch.

All ranks apply the same gradients. But each rank computes the norm for clipping and the update locally, and different
processors round differently. A difference in the last bit would remain and grow. Do not correct only the weights:
unequal moments of the optimiser would make them diverge again.
"""

from zlib import crc32

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.computing.optimiser import Optimiser
from trainer.distributed import collectives
from trainer.distributed.ranks import Ranks


def synchronise(model: nn.Module, optimiser: Optimiser, ranks: Ranks) -> float | None:
    """Compare the ranks' weights. If they differ, copy the weights and the moments of rank 0 to all ranks.

    Returns the largest absolute difference of a weight, the same number on every rank; None if all weights were equal.
    All ranks must call this function between the same two steps. Raises TrainingError if other ranks are lost.
    """
    if ranks.world_size == 1 or len(set(ranks.gather(_checksums(model)))) == 1:
        return None
    with collectives.convert_errors("between two steps"):
        most = max(_take_first(parameter.detach()) for parameter in model.parameters())
        for moments in optimiser.state().values():
            dist.broadcast(moments, src=0)
    apart: list[float] = ranks.gather(most)
    return max(apart)


def _checksums(model: nn.Module) -> tuple[int, ...]:
    """Return a checksum for each parameter. A CRC detects rounding differences, and is fast on large tables."""
    return tuple(crc32(parameter.detach().cpu().contiguous().numpy().data) for parameter in model.parameters())


def _take_first(tensor: Tensor) -> float:
    """Overwrite `tensor` with rank 0's tensor. Return the largest absolute difference between the two."""
    first = tensor.clone(memory_format=torch.contiguous_format)
    dist.broadcast(first, src=0)
    most = float((first - tensor).abs().max())
    tensor.copy_(first)
    return most
