"""Optimisers, and the learning rate over a run."""

import pytest
import torch
from torch import Tensor, nn

from trainer.classification.models.classifier import Classifier
from trainer.computing.optimiser import Optimiser, learning_rate
from trainer.options.optimisation_options import OptimisationOptions


class Few(Classifier):
    """A table of words, and two other parameters."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.embedding = nn.Embedding(30, 4)
        self.embedding.weight.data.copy_(torch.randn(30, 4, generator=generator))
        self.vector = nn.Parameter(torch.randn(7, generator=generator))
        self.number = nn.Parameter(torch.randn((), generator=generator))

    def classify(self, tokens: Tensor, lengths: Tensor, keys: Tensor | None) -> Tensor:
        raise NotImplementedError


def parameters() -> list[nn.Parameter]:
    return list(Few().parameters())


def gradients(steps: int) -> list[list[Tensor]]:
    generator = torch.Generator().manual_seed(2)
    return [[torch.randn(each.shape, generator=generator) for each in parameters()] for _ in range(steps)]


def give(to: list[nn.Parameter], found: list[Tensor]) -> None:
    for parameter, gradient in zip(to, found, strict=True):
        parameter.grad = gradient.clone()


@pytest.mark.parametrize("kind", ["adam", "adagrad", "sgd"])
def test_steps_equal_those_of_torch_bit_for_bit_even_after_a_resume(kind):
    config = OptimisationOptions(optimiser=kind, momentum=0.9, word_rate=0.5)
    few, others = Few(), Few()
    ours, theirs = list(few.parameters()), list(others.parameters())
    own = Optimiser(few, [few.embedding.weight], config)
    groups = [{"params": [others.vector, others.number]}, {"params": [others.embedding.weight]}]
    make = {
        "adam": lambda: torch.optim.Adam(groups, lr=0.01, fused=True),
        "adagrad": lambda: torch.optim.Adagrad(groups, lr=0.01),
        "sgd": lambda: torch.optim.SGD(groups, lr=0.01, momentum=0.9, fused=True),
    }
    peer = make[kind]()
    for number, found in enumerate(gradients(20)):
        if number == 10:
            saved, own = own.state(), Optimiser(few, [few.embedding.weight], config)
            own.restore(saved)
        rate = 0.01 / (1 + number)
        own.clear()
        assert all(each.grad is None for each in ours)
        give(ours, found)
        own.step(rate)
        give(theirs, found)
        for group, share in zip(peer.param_groups, (1.0, 0.5), strict=True):
            group["lr"] = share * rate
        peer.step()
    assert all(torch.equal(mine, other) for mine, other in zip(ours, theirs, strict=True))


def test_adagrad_reads_no_number_from_the_device():
    few = Few().to("meta")  # a device without readable numbers
    for each in few.parameters():
        each.grad = torch.zeros_like(each)
    own = Optimiser(few, [], OptimisationOptions(optimiser="adagrad"))
    own.step(0.1)
    assert own.state()["steps.0"] == 1


def rates(steps: int, batch: int = 256, **changes: object) -> list[float]:
    config = OptimisationOptions(learning_rate=1.0, **changes)
    return [learning_rate(config, step, steps, batch) for step in range(steps)]


def test_the_rate_rises_linearly_then_falls_along_a_cosine_or_is_constant():
    falling = rates(100, warm_up=0.1)
    assert falling[:10] == pytest.approx([(step + 1) / 11 for step in range(10)])
    assert falling[10] == 1.0
    assert falling[55] == pytest.approx(0.5)
    assert 0 < falling[99] < 0.01
    assert falling[10:] == sorted(falling[10:], reverse=True)
    assert set(rates(20, schedule="constant", warm_up=0.0)) == {1.0}
    assert rates(1)[0] > 0


def test_the_rate_grows_with_the_global_batch():
    for scaling, factor in (("none", 1.0), ("root", 4.0), ("linear", 16.0)):
        assert rates(50, 4096, rate_scaling=scaling) == pytest.approx([factor * rate for rate in rates(50)])
    assert max(rates(50, 64, rate_scaling="root")) == 0.5
