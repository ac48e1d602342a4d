"""The losses of predictions by a softmax over the vocabulary: exact, or of a sample of words.

The exact one computes the losses and their gradients in pieces, in which the probabilities of all words fit into
memory: they are never there for all tokens at once.

The sampled one compares each word with a few others, which are drawn anew in each step from a log-uniform distribution,
as words are by frequency, and are the same for all rows (Jean et al. 2015). Their logits are corrected by the logarithm
of how often a word is drawn, so that the loss tends to the exact one as more are drawn. What is reported of held-out
text is always exact.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from trainer.devices import moved_to
from trainer.order import IntArray

_PIECE = 1 << 25
"""Logits that are there at once: 128 MB."""
_OF_SAMPLES = 7


class Sample(NamedTuple):
    """Words that were drawn for a step."""

    ids: Tensor
    """(k,) int64, perhaps some of them twice."""
    log_counts: Tensor
    """(words,): the logarithm of how often each word is drawn, on average."""


def sampled_ids(words: int, count: int, seed: int, step: int) -> IntArray:
    """(count,): the ids that are drawn of `words` at a step of the run; the same on every rank."""
    drawn = np.random.default_rng((seed, step, _OF_SAMPLES)).random(count)
    ids: IntArray = np.minimum(np.exp(drawn * math.log(words + 1)).astype(np.int64) - 1, words - 1)
    return ids


@lru_cache(maxsize=8)
def log_counts(words: int, count: int, device: torch.device) -> Tensor:
    """(words,): see Sample."""
    ranks = torch.arange(words, dtype=torch.float64)
    shares = torch.log1p(1 / (ranks + 1)) / math.log(words + 1)
    return (shares * count).log().to(device, torch.float32)


def draw(words: int, count: int, seed: int, step: int, device: torch.device) -> Sample:
    """The words that are drawn at a step."""
    return Sample(moved_to(sampled_ids(words, count, seed, step), device), log_counts(words, count, device))


def sampled_loss(outputs: Tensor, targets: Tensor, weights: Tensor, bias: Tensor, sample: Sample) -> Tensor:
    """The sum of the losses of `targets` (n,) for `outputs` (n, width), among the words of a sample; float32."""
    own = (outputs * weights[targets].to(outputs.dtype)).sum(1).float() + bias[targets]  # (n,)
    others = (outputs @ weights[sample.ids].to(outputs.dtype).t()).float()  # (n, k)
    others = others + (bias - sample.log_counts)[sample.ids]  # on average as many as there are words
    others = others.masked_fill(targets[:, None] == sample.ids, -math.inf)
    return (torch.logaddexp(others.logsumexp(1), own) - own).sum()


def exact_loss(outputs: Tensor, targets: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    """The sum of the losses of `targets` (n,) for `outputs` (n, width) among all words, whose `weights` are (words,
    width), and `bias` (words,); float32."""
    found: Tensor = _ExactLoss.apply(outputs, targets, weights, bias)  # type: ignore[no-untyped-call]
    return found


class _ExactLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, outputs: Tensor, targets: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
        wanted = any(ctx.needs_input_grad)
        low = weights.to(outputs.dtype)
        loss = outputs.new_zeros((), dtype=torch.float32)
        by_outputs = torch.empty_like(outputs) if wanted else None
        by_weights = torch.zeros_like(low, dtype=torch.float32) if wanted else None
        by_bias = torch.zeros_like(bias) if wanted else None
        size = max(1, _PIECE // len(weights))
        for start in range(0, len(outputs), size):
            some, right = outputs[start : start + size], targets[start : start + size]
            logits = (some @ low.t()).float().add_(bias)  # (size, words)
            logits -= logits.logsumexp(1, keepdim=True)
            loss -= logits.gather(1, right[:, None]).sum()
            if by_outputs is None or by_weights is None or by_bias is None:
                continue
            errors = logits.exp_()
            errors[torch.arange(len(right), device=right.device), right] -= 1.0
            by_bias += errors.sum(0)
            errors = errors.to(outputs.dtype)
            by_outputs[start : start + size] = errors @ low
            by_weights += errors.t() @ some
        if wanted:
            ctx.save_for_backward(by_outputs, by_weights, by_bias)
        return loss

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        by_outputs, by_weights, by_bias = ctx.saved_tensors
        return by_outputs * gradient.to(by_outputs.dtype), None, by_weights * gradient, by_bias * gradient
