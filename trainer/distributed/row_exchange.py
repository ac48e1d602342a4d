"""The sum over ranks of gradients of touched rows: every rank asks the others which rows they touched.

To find the rows that a whole global batch touches, a rank would have to read all of its texts, and not its own share
alone. So the ranks send each other their rows and values, and every rank adds them up in the order of the ranks: all
get the same, to the last bit. An all-gather would need messages of one size, and gloo's copies them twice.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch.distributed as dist
from torch import Tensor

from trainer.computing.row_gradients import TouchedRows, add_up
from trainer.distributed.half_precision import HALF_SCALE, in_half_precision


def sum_over_ranks(own: TouchedRows, counts: Sequence[int], rank: int, *, bits: int) -> TouchedRows:
    """The sum of the gradients `own` of one table over the ranks of the default group, whose numbers of rows are
    `counts` (ranks,); this is `rank`. `bits`: 16 to send values in half precision, else 32. A table has fewer than
    2**31 rows.

    Raises RuntimeError if other ranks are gone.
    """
    values = own.values if bits == 32 else in_half_precision(own.values, len(counts))
    sent = own.rows.int(), values.contiguous()
    received = {
        other: (sent[0].new_empty(count), values.new_empty((count, values.shape[1])))
        for other, count in enumerate(counts)
        if count and other != rank
    }
    exchanges = [
        *(
            _operation(dist.irecv, tensor, other, tag)
            for other in received
            for tag, tensor in enumerate(received[other])
        ),
        *(
            _operation(dist.isend, tensor, other, tag)
            for other in range(len(counts))
            if len(own.rows) and other != rank
            for tag, tensor in enumerate(sent)
        ),
    ]
    for each in dist.batch_isend_irecv(exchanges) if exchanges else ():
        each.wait()
    received[rank] = sent
    parts = [_part(*received[other], own.values) for other in sorted(received)]
    return add_up(parts)


def _operation(operation: Callable[..., Any], tensor: Tensor, other: int, tag: int) -> dist.P2POp:
    return dist.P2POp(operation, tensor, other, tag=tag)


def _part(rows: Tensor, values: Tensor, like: Tensor) -> TouchedRows:
    """What a rank sent, with values as `like` has them."""
    return TouchedRows(rows.long(), values if values.dtype == like.dtype else values.to(like.dtype) / HALF_SCALE)
