"""A program for two ranks: states are carried along streams whose rank changes, exactly as they were."""

import numpy as np
import torch

from trainer.distributed.ranks import join_process_group
from trainer.pretraining.states import CarriedStates, piece_of

STREAMS, WIDTH = 7, 3
SPLITS = ((7, 0), (3, 4), (0, 7), (5, 2), (5, 2), (1, 6), (4, 3))


def after(states: torch.Tensor, step: int, streams: np.ndarray) -> torch.Tensor:
    """What stands for an LSTM: the states after a step depend on all before."""
    return 2 * states + step + torch.from_numpy(streams)[:, None]


with join_process_group(1) as ranks:
    right = torch.zeros(STREAMS, WIDTH)
    carried = CarriedStates(STREAMS, WIDTH, torch.device("cpu"))
    for step, split in enumerate(SPLITS):
        carried.begin_step(step, np.array(split))
        own = piece_of(np.array(split), ranks.rank)
        assert torch.equal(carried.before(own), right[own]), (step, ranks.rank)
        carried.keep(step, own, torch.full((len(own), WIDTH), -1.0))  # of a step that is computed again
        carried.keep(step + 1, own, torch.full((len(own), WIDTH), -2.0))  # of a measurement
        carried.keep(step, own, after(carried.before(own), step, own))
        right = after(right, step, np.arange(STREAMS))
    carried.gather()
    assert torch.equal(carried.state(), right)
    other = CarriedStates(STREAMS, WIDTH, torch.device("cpu"))
    other.restore(carried.state())
    other.begin_step(len(SPLITS), np.array((2, 5)))
    assert torch.equal(other.before(np.arange(STREAMS)), right)
