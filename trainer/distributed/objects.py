"""Values that ranks tell each other: numbers, texts, None, tensors, and tuples, lists, sets and dictionaries of these.

Do not use torch's `all_gather_object` and `broadcast_object_list`: they unpickle what comes, which executes whatever a
peer wants, and gloo does not ask who a peer is. torch.load reads the values named above, and refuses all others.
"""

from io import BytesIO
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def gather(mine: Any, size: int, group: dist.ProcessGroup | None) -> list[Any]:
    """The value of each of so many ranks. Raises RuntimeError if other ranks are gone."""
    own = _packed(mine)
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(size)]
    dist.all_gather(lengths, torch.tensor([len(own)]), group)
    longest = int(max(lengths))
    found = [own.new_empty(longest) for _ in range(size)]
    dist.all_gather(found, torch.cat((own, own.new_zeros(longest - len(own)))), group)
    return [_unpacked(each[: int(length)]) for each, length in zip(found, lengths, strict=True)]


def broadcast(value: Any, rank: int) -> Any:
    """The value of rank 0. Raises RuntimeError if other ranks are gone."""
    own = _packed(value) if rank == 0 else torch.empty(0, dtype=torch.uint8)
    length = torch.tensor([len(own)])
    dist.broadcast(length, src=0)
    found = own if rank == 0 else own.new_empty(int(length))
    dist.broadcast(found, src=0)
    return _unpacked(found)


def _packed(value: Any) -> Tensor:
    content = BytesIO()
    torch.save(value, content)
    return torch.frombuffer(content.getbuffer(), dtype=torch.uint8)


def _unpacked(content: Tensor) -> Any:
    return torch.load(BytesIO(content.numpy().tobytes()), map_location="cpu", weights_only=True)
