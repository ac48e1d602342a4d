"""Language models: their gradients in each precision, and tokens a second beside plain torch, with the share of the
peak.

Plain torch is nn.LSTM of all layers at once and a softmax by one matrix product, in bfloat16, with the same dropout
between layers, by torch.optim's fused Adam. The peak is an H100's in bfloat16 without sparsity; other GPUs have no
share.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.gpu.part import Outcome, milliseconds, print_progress
from benchmarks.record import table
from trainer.computing.optimiser import Optimiser
from trainer.config import configured
from trainer.language.model import EncoderSettings, LanguageModel, Regularisation
from trainer.language.softmax import exact_loss

_PEAK = 989e12
"""FLOPS of an H100 SXM in bfloat16, dense (NVIDIA's data sheet)."""
_FAR = {"float32": 2e-3, "bfloat16": 5e-2}
"""How far a gradient may be from a CPU's in float64, as a share of its length."""
_RATE = 1e-3


class Case(NamedTuple):
    """A language model, and what it reads in a step."""

    settings: EncoderSettings
    rows: int
    tokens: int
    """Of a row in a step."""


def words(embedding: int, hidden: int, layers: int) -> EncoderSettings:
    """Of a model of words, with as many of them as the presets have."""
    return EncoderSettings(
        words=30_002, embedding=embedding, hidden=hidden, layers=layers, direction="forward", tied=True
    )


BYTES = EncoderSettings(words=258, embedding=64, hidden=4096, layers=1, direction="forward", tied=False)

_CHECKED = Case(EncoderSettings(words=500, embedding=48, hidden=80, layers=2, direction="both", tied=True), 8, 40)


@dataclass(frozen=True)
class Sizes:
    """What is measured."""

    cases: tuple[tuple[str, Case], ...] = (
        ("small", Case(words(256, 512, 2), 128, 70)),
        ("medium", Case(words(400, 1152, 3), 128, 70)),
        ("large", Case(words(512, 2048, 3), 512, 128)),
        ("4,096 bytes", Case(BYTES, 512, 256)),
    )
    checked: Case = _CHECKED
    repeats: int = 5


def measure(device: torch.device, sizes: Sizes) -> Outcome:
    """The largest error of a gradient, and tokens a second."""
    errors = {name: _error(device, sizes.checked, name) for name in _FAR}
    for name, error in errors.items():
        print_progress(f"gradients in {name}: at most {error:.1e} of their length from those of a CPU in float64")
    speeds = {name: _speeds(device, case, sizes.repeats) for name, case in sizes.cases}
    rows = [
        [name, f"{each['tokens_per_second']:,.0f}", f"{each['plain_torch']:,.0f}", f"{each['share_of_peak']:.0%}"]
        for name, each in speeds.items()
    ]
    print_progress(table(["model", "tokens a second", "plain torch's", "of an H100's peak"], rows))
    failed = any(error > _FAR[name] for name, error in errors.items())
    said = ", ".join(f"{name} {each['tokens_per_second']:,.0f} tokens/s" for name, each in speeds.items())
    return Outcome(said=said, figures={"errors": errors, "speeds": speeds}, failed=failed)


def _error(device: torch.device, case: Case, precision: str) -> float:
    """The largest distance of a parameter's gradient from the right one, as a share of its length."""
    torch.manual_seed(0)
    right = LanguageModel(case.settings).double()
    right.precision = torch.float64
    tokens = torch.randint(0, case.settings.words, (case.tokens + 1, case.rows))
    own = copy.deepcopy(right).float().to(device)
    own.precision = getattr(torch, precision)
    pairs = zip(_gradients(right, tokens), _gradients(own, tokens.to(device)), strict=True)
    return max(float((got.double().cpu() - true).norm() / true.norm()) for true, got in pairs)


def _gradients(model: LanguageModel, tokens: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(_loss(model, tokens), list(model.parameters()))


def _loss(model: LanguageModel, tokens: Tensor, shift: int | None = None) -> Tensor:
    keys = None if shift is None else torch.arange(tokens.shape[1], device=tokens.device)
    read = [tokens] * len(model.settings.directions)
    outputs, _ = model([each[:-1] for each in read], None, keys, shift)
    losses = [exact_loss(each.flatten(0, 1), tokens[1:].flatten(), *model.outputs) for each in outputs]
    return torch.stack(losses).sum() / tokens[1:].numel()


def _speeds(device: torch.device, case: Case, repeats: int) -> dict[str, Any]:
    count = case.rows * case.tokens
    tokens = random_tokens(case).to(device)
    own = milliseconds(own_step(device, case, tokens), device, repeats=repeats)
    plain = milliseconds(plain_step(device, case, tokens), device, repeats=repeats)
    weights = case.settings.weights - (0 if case.settings.tied else case.settings.words * case.settings.embedding)
    return {
        "tokens_per_second": count / own * 1000,
        "plain_torch": count / plain * 1000,
        "share_of_peak": 6 * weights * count / (own / 1000) / _PEAK,
        "milliseconds": own,
    }


def random_tokens(case: Case) -> Tensor:
    """(times + 1, rows): what a step reads, and the last tokens that it predicts."""
    return torch.from_numpy(np.random.default_rng(0).integers(0, case.settings.words, (case.tokens + 1, case.rows)))


def own_step(device: torch.device, case: Case, tokens: Tensor) -> Callable[[], None]:
    """A step of Shoal's model, with all of its regularisation, on `tokens` (times + 1, rows)."""
    shares = Regularisation(inputs=0.2, between=0.2, words=0.05, weights=0.2)
    model = LanguageModel(case.settings, shares).to(device)
    model.precision = torch.bfloat16 if device.type == "cuda" else torch.float32
    config = configured({"model": "awd-lstm", "data": "none", "output": "none"})
    optimiser = Optimiser(model, (), config)
    parameters = list(model.parameters())

    def step() -> None:
        for parameter, gradient in zip(
            parameters, torch.autograd.grad(_loss(model, tokens, 0), parameters), strict=True
        ):
            parameter.grad = gradient
        optimiser.step(_RATE)

    return step


def plain_step(device: torch.device, case: Case, tokens: Tensor) -> Callable[[], None]:
    """The same step of plain torch's model."""
    settings = case.settings
    embedding = nn.Embedding(settings.words, settings.embedding).to(device)
    widths = (settings.embedding, *settings.widths)
    layers = [nn.LSTM(*pair).to(device) for pair in pairwise(widths)]
    dropout = nn.Dropout(0.2)
    outputs = None if settings.tied else nn.Linear(widths[-1], settings.words).to(device)
    modules = nn.ModuleList([embedding, *layers, *([outputs] if outputs else [])])
    optimiser = torch.optim.Adam(modules.parameters(), _RATE, fused=device.type == "cuda")

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            states = dropout(embedding(tokens[:-1]))
            for layer in layers:
                states = dropout(layer(states)[0])
            logits = outputs(states) if outputs else states @ embedding.weight.t()
        loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens[1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step
