"""The sum over ranks of gradients of touched rows: every rank asks the others which rows they touched.

To find the rows that a whole global batch touches, a rank would have to read all of its texts, and not its own share
alone. So the ranks gather each other's rows with their values, in one collective, and every rank adds them up in the
order of the ranks: all get the same, to the last bit.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.computing.row_gradients import TouchedRows, add_up
from trainer.distributed.half_precision import HALF_SCALE, in_half_precision


def sum_over_ranks(own: TouchedRows, counts: Sequence[int], rank: int, *, bits: int) -> TouchedRows:
    """The sum of the gradients `own` of one table over the ranks of the default group, whose numbers of rows are
    `counts` (ranks,); this is `rank`. `bits`: 16 to send values in half precision, else 32.

    Raises RuntimeError if other ranks are gone.
    """
    message = _packed(own, max(counts), len(counts), bits)
    gathered = [torch.empty_like(message) for _ in counts]
    dist.all_gather(gathered, message)
    parts = [_unpacked(each, count, max(counts), own, bits) for each, count in zip(gathered, counts, strict=True)]
    if bits == 32:
        parts[rank] = own
    return add_up(parts)


def _packed(own: TouchedRows, most: int, ranks: int, bits: int) -> Tensor:
    """Bytes: as many rows as the rank with the `most` rows has, then their values."""
    values = own.values if bits == 32 else in_half_precision(own.values, ranks)
    numbers, values = (each.contiguous().view(torch.uint8).flatten() for each in (own.rows, values))
    message = numbers.new_zeros(most * (own.rows.itemsize + own.values.shape[1] * bits // 8))
    message[: len(numbers)] = numbers
    message[most * own.rows.itemsize : most * own.rows.itemsize + len(values)] = values
    return message


def _unpacked(message: Tensor, count: int, most: int, like: TouchedRows, bits: int) -> TouchedRows:
    columns, kind = like.values.shape[1], like.values.dtype if bits == 32 else torch.float16
    at = most * like.rows.itemsize
    values = message[at : at + count * columns * kind.itemsize].view(kind).view(count, columns)
    rows = message[: count * like.rows.itemsize].view(like.rows.dtype)
    return TouchedRows(rows, values if bits == 32 else values.to(like.values.dtype) / HALF_SCALE)
