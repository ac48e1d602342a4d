"""The weights that all ranks have in common: compared once an epoch, and made equal where they have come apart.

All ranks step by the same gradients, but each computes their length, by which they are clipped, and the step by the
routines of its own processor, and unlike ones round otherwise. Nothing brings ranks together again that differ in a
last bit: it would stay, and grow. The easy mistake is to mend the weights alone: the optimiser's moments, which were
made of them, would part them again.
"""

from hashlib import blake2b

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.computing.optimiser import Optimiser
from trainer.distributed import collectives
from trainer.distributed.ranks import Ranks


def synchronise(model: nn.Module, optimiser: Optimiser, ranks: Ranks) -> float | None:
    """Where the ranks' weights differ, give all of them rank 0's, and its moments.

    Returns, on every rank, by how much at most a weight differed; None where all were equal. Every rank has to call
    it, between two steps. Raises TrainingError when other ranks are gone.
    """
    if ranks.world_size == 1 or len(set(ranks.gather(_digest(model)))) == 1:
        return None
    with collectives.convert_errors("between two steps"):
        most = max(_take_first(parameter.detach()) for parameter in model.parameters())
        for moments in optimiser.state().values():
            dist.broadcast(moments, src=0)
    apart: list[float] = ranks.gather(most)
    return max(apart)


def _digest(model: nn.Module) -> bytes:
    digest = blake2b(digest_size=16)
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return digest.digest()


def _take_first(own: Tensor) -> float:
    """Replace a tensor by rank 0's; returns by how much at most it differed."""
    first = own.clone(memory_format=torch.contiguous_format)
    dist.broadcast(first, src=0)
    most = float((first - own).abs().max())
    own.copy_(first)
    return most
