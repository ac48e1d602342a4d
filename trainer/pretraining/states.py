"""The LSTM's states of all streams, carried from step to step, whichever rank computes a stream's next row.

Each rank computes a contiguous piece of the streams. When the balancer moves the borders, the streams that change their
rank take their states with them, in one all-reduce of theirs alone: each state is added to zeros, and so arrives as it
was.

A step's states are kept apart until the next step begins: a step that is computed again, because memory ran out, begins
with the same ones, and one that only measures speed leaves none.
"""

from collections.abc import Sequence

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from trainer.distributed import collectives
from trainer.order import IntArray


class CarriedStates:
    """States (streams, width) on this rank's device, right for the streams that are its own."""

    def __init__(self, streams: int, width: int, device: torch.device) -> None:
        self._states = torch.zeros(streams, width, device=device)
        self._owners: IntArray | None = None
        """(streams,): the rank that has the right state of each; None: all have."""
        self._step: int | None = None
        self._found: list[tuple[IntArray, Tensor]] = []

    def begin_step(self, step: int, split: IntArray) -> None:
        """Bring the states of this rank's rows of a step here, of which each rank computes as many as `split` (ranks,)
        says. All ranks call it at once. Raises TrainingError if other ranks are gone."""
        self._commit()
        self._step = step
        owners = np.repeat(np.arange(len(split)), split)
        if self._owners is not None and len(moved := np.flatnonzero(owners != self._owners)):
            self._share(moved, f"at step {step + 1}")
        self._owners = owners

    def before(self, streams: IntArray) -> Tensor:
        """(n, width): the states with which the rows of these streams (n,) begin."""
        return self._states[torch.from_numpy(streams).to(self._states.device)]

    def keep(self, step: int, streams: IntArray, states: Tensor) -> None:
        """The states (n, width) after the rows of a step; of any other step than the one that was begun they are
        dropped."""
        if step == self._step:
            self._found.append((streams, states))

    def gather(self) -> None:
        """Bring all states to all ranks, which call it at once. Raises TrainingError if other ranks are gone."""
        self._commit()
        if self._owners is not None and dist.get_world_size() > 1:
            self._share(np.arange(len(self._states)), "before a checkpoint")
            self._owners = None

    def state(self) -> Tensor:
        """All of them, after `gather`."""
        return self._states.cpu()

    def restore(self, states: Tensor) -> None:
        """Begin with these. Raises ValueError for others than of so many streams of this width."""
        if states.shape != self._states.shape:
            raise ValueError(f"there are states {tuple(states.shape)} of {tuple(self._states.shape)}")
        self._states.copy_(states)
        self._owners, self._step, self._found = None, None, []

    def clear(self) -> None:
        """Begin with zeros: another epoch has other streams."""
        self._states.zero_()
        self._owners, self._step, self._found = None, None, []

    def _commit(self) -> None:
        for streams, states in self._found:
            self._states[torch.from_numpy(streams).to(self._states.device)] = states
        self._found = []

    def _share(self, streams: IntArray, when: str) -> None:
        """Give all ranks the states of these streams (n,), each from the rank that has it."""
        assert self._owners is not None
        at = torch.from_numpy(streams).to(self._states.device)
        own = torch.from_numpy(self._owners[streams] == dist.get_rank()).to(self._states.device)
        message = self._states[at] * own[:, None]
        with collectives.convert_errors(when):
            dist.all_reduce(message)
        self._states[at] = message


def piece_of(split: Sequence[int] | IntArray, rank: int) -> IntArray:
    """(split[rank],): the positions of a rank's rows in a step."""
    end = int(np.sum(split[: rank + 1]))
    return np.arange(end - int(split[rank]), end)
