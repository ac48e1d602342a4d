"""The losses of a language model, beside torch's own, and a sample of words beside all of them."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from trainer.language import softmax
from trainer.language.softmax import draw, exact_loss, sampled_ids, sampled_loss

WORDS, WIDTH, TOKENS = 50, 6, 30


@pytest.fixture
def problem() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    outputs = torch.randn(TOKENS, WIDTH, requires_grad=True)
    weights = torch.randn(WORDS, WIDTH, requires_grad=True)
    bias = torch.randn(WORDS, requires_grad=True)
    return outputs, torch.randint(0, WORDS, (TOKENS,)), weights, bias


@pytest.mark.parametrize("piece", [1 << 25, 3 * WORDS])
def test_the_exact_loss_and_its_gradients_are_those_of_torch(problem, piece: int, monkeypatch) -> None:
    monkeypatch.setattr(softmax, "_PIECE", piece)
    outputs, targets, weights, bias = problem
    expected = cross_entropy(outputs @ weights.t() + bias, targets, reduction="sum")
    found = exact_loss(*problem)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    learnt = (outputs, weights, bias)
    for own, right in zip(
        torch.autograd.grad(3 * found, learnt), torch.autograd.grad(3 * expected, learnt), strict=True
    ):
        torch.testing.assert_close(own, right, rtol=1e-4, atol=1e-5)


def test_a_large_sample_has_nearly_the_exact_loss_and_gradient(problem) -> None:
    outputs, _, weights, bias = problem
    exact = exact_loss(*problem)
    right = torch.cat([each.flatten() for each in torch.autograd.grad(exact, (outputs, weights, bias))])
    distances = []
    for count in (20, 2000):
        losses, gradients = [], []
        for step in range(20):
            loss = sampled_loss(*problem, draw(WORDS, count, 0, step, torch.device("cpu")))
            losses.append(loss.item())
            of_step = torch.autograd.grad(loss, (outputs, weights, bias))
            gradients.append(torch.cat([each.flatten() for each in of_step]))
        distances.append(
            (abs(np.mean(losses) / exact.item() - 1), float((torch.stack(gradients).mean(0) - right).norm()))
        )
    (far, far_gradient), (near, near_gradient) = distances
    assert near < 0.01 < far
    assert near_gradient < 0.3 * far_gradient


def test_frequent_words_are_drawn_more_often_and_every_rank_draws_the_same() -> None:
    drawn = np.concatenate([sampled_ids(1000, 500, 3, step) for step in range(40)])
    counts = np.bincount(drawn, minlength=1000)
    assert counts[:10].sum() > 5 * counts[500:510].sum()
    assert drawn.min() == 0 and drawn.max() <= 999  # noqa: PT018
    expected = np.exp(softmax.log_counts(1000, 500, torch.device("cpu")).numpy())
    assert expected.sum() == pytest.approx(500, rel=1e-4)
    assert counts[:5] / 40 == pytest.approx(expected[:5], rel=0.2)
    assert (sampled_ids(1000, 500, 3, 7) == sampled_ids(1000, 500, 3, 7)).all()
