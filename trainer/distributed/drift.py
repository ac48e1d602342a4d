"""Weights that differ between ranks: compared once an epoch, and made equal if they differ.

All ranks step by the same gradients. But each computes the gradient's length, by which it is clipped, and the step with
the routines of its own processor, and different processors round differently. A difference in a last bit would stay,
and grow. Do not correct the weights alone: the optimiser's moments would make them differ again.
"""

from zlib import crc32

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.computing.optimiser import Optimiser
from trainer.distributed import collectives
from trainer.distributed.ranks import Ranks


def synchronise(model: nn.Module, optimiser: Optimiser, ranks: Ranks) -> float | None:
    """If the ranks' weights differ, give all ranks the weights and moments of rank 0.

    Returns, on every rank, the largest difference of a weight; None if all were equal. Every rank has to call it,
    between two steps. Raises TrainingError if other ranks are gone.
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
    """One for each parameter. Not a digest: nobody forges weights, and a large table would take as long as an epoch."""
    return tuple(crc32(parameter.detach().cpu().contiguous().numpy().data) for parameter in model.parameters())


def _take_first(own: Tensor) -> float:
    """Replace a tensor by rank 0's; returns the largest difference."""
    first = own.clone(memory_format=torch.contiguous_format)
    dist.broadcast(first, src=0)
    most = float((first - own).abs().max())
    own.copy_(first)
    return most
