"""Ranks whose weights differ by rounding are made equal."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist

from trainer.computing.optimiser import Optimiser
from trainer.config import TrainConfig
from trainer.distributed.drift import _checksums, synchronise


def stepped(model: torch.nn.Module) -> Optimiser:
    """An optimiser after a step."""
    found = Optimiser(model, [], TrainConfig(data=Path("d"), output=Path("o")))
    for each in model.parameters():
        each.grad = torch.ones_like(each)
    found.step(0.01)
    return found


def test_a_rank_whose_weights_differ_takes_those_and_the_moments_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    first, own = (torch.nn.Linear(2, 1) for _ in range(2))
    own.load_state_dict(first.state_dict())
    of_first, of_own = stepped(first), stepped(own)
    ranks: Any = SimpleNamespace(world_size=2, gather=lambda mine: [mine, _checksums(first)])
    assert synchronise(own, of_own, ranks) is None
    own.weight.data[0, 1] += 0.25
    of_own.state()["first.0"] += 1
    sent = iter([*(each.detach() for each in first.parameters()), *of_first.state().values()])
    monkeypatch.setattr(dist, "broadcast", lambda tensor, src: tensor.copy_(next(sent)) if src == 0 else None)
    ranks.gather = lambda mine: [mine, 0.0 if isinstance(mine, float) else _checksums(first)]
    assert synchronise(own, of_own, ranks) == pytest.approx(0.25)
    assert _checksums(own) == _checksums(first)
    assert all(torch.equal(each, of_first.state()[name]) for name, each in of_own.state().items())
    assert next(sent, None) is None
