"""The gradients of large tables over all ranks: every rank sends the others what its own are made of.

To find the rows that a whole global batch touches, a rank would have to read all of its texts, and not its own share
alone. So the ranks send each other the ids of their rows, and a gradient for each text, which all of its rows have:
less than a tenth of the rows with their gradients. Every rank puts them together in the order of the ranks, so that all
get the same, to the last bit. An all-gather would need messages of one size, and gloo's copies them twice.
"""

from collections.abc import Sequence

import torch.distributed as dist

from trainer.computing.row_gradients import Means, joined

_MOST = 1 << 16
"""Ranks send each other numbers in float32, which has none between larger even ones from 2**24 on."""


def counts_of(own: Means) -> tuple[int, int, int]:
    """Three numbers below 2**24: how much this rank sends."""
    return (*divmod(len(own.ids), _MOST), len(own.lengths))


def of_counts(counts: Sequence[int]) -> tuple[int, int]:
    """The numbers of ids and of means of a rank with these `counts_of`."""
    high, low, means = counts
    return high * _MOST + low, means


def bytes_of(own: Means) -> int:
    """The bytes that this rank sends each of the others."""
    return own.ids.nbytes + own.lengths.nbytes + own.gradients.nbytes


def means_of_ranks(own: Means, counts: Sequence[Sequence[int]], rank: int) -> Means:
    """What the gradient of one table is made of over the ranks of the default group, whose `counts_of` are `counts`
    (ranks, 3); this is `rank`.

    Raises RuntimeError if other ranks are gone.
    """
    columns = own.gradients.shape[1]
    sent = own._replace(gradients=own.gradients.contiguous())
    of_ranks = {
        other: Means(sent.ids.new_empty(ids), sent.lengths.new_empty(n), sent.gradients.new_empty((n, columns)))
        for other, (ids, n) in enumerate(map(of_counts, counts))
        if n and other != rank
    }
    operations = [
        *(
            dist.P2POp(dist.irecv, tensor, other, tag=tag)
            for other in of_ranks
            for tag, tensor in enumerate(of_ranks[other])
        ),
        *(
            dist.P2POp(dist.isend, tensor, other, tag=tag)
            for other in range(len(counts))
            if len(own.lengths) and other != rank
            for tag, tensor in enumerate(sent)
        ),
    ]
    for each in dist.batch_isend_irecv(operations) if operations else ():
        each.wait()
    of_ranks[rank] = sent
    return joined([of_ranks[other] for other in sorted(of_ranks)])
