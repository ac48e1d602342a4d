"""Strength of a model on few training rows: how far its outputs may move from the class frequencies.

A model that is trained on a few hundred rows is overconfident, and the few validation rows hardly show by how much. So
the model is first trained on folds of the training rows. The strength is the factor by which the outputs' distance from
those of a constant model is multiplied. Its likelihood is that of the rows that the folds hold out. A strength of 0 is
likely a priori, so that the model is nearly constant if its texts do not predict its labels.

Equal texts are in the same fold. Otherwise the strength would reward memorisation.
"""

from dataclasses import replace
from zlib import crc32

import numpy as np
import torch
from shoal_balance import BatchOrder, IntArray
from torch import Tensor

from corpus.text import FIRST_WORD
from trainer.classification import models
from trainer.classification.data import TextData
from trainer.classification.losses import Loss
from trainer.classification.rows import Rows
from trainer.computing.optimiser import Optimiser, learning_rate
from trainer.config import TrainConfig

FEW_ROWS = 2_000
"""Number of training rows from which on the strength is 1."""
_FOLDS = 5
_STRENGTHS = torch.arange(41) / 40
"""Possible strengths, 0 to 1. Those above 0 have equal prior probabilities."""
_ZERO = 9
"""Prior odds of the strength 0. The folds' models share most of their rows, so the likelihood exaggerates the evidence.
"""


def base_outputs(positive_weight: float | None, loss: Loss, rows: Rows) -> Tensor:
    """Return the outputs (outputs,) of strength 0: those of a constant model, without a default weight of positives."""
    return _plain_loss(positive_weight, loss).constant_outputs(rows.labels, rows.ratings)


def fold_strength(config: TrainConfig, data: TextData, loss: Loss, *, batch: int, device: torch.device) -> float:
    """Return the posterior mean of the strength of a model that is trained on `data`.

    `config`: the configuration before `fit_settings`. `batch`: the number of rows per step. The result is a function of
    the rows, the configuration and the seed, up to rounding on different processors.
    """
    weight: float | None = config.options.positive_weight
    fold_of, plain, strengths = _folds(data.training), _plain_loss(weight, loss), _STRENGTHS.to(device)
    losses = torch.zeros(len(strengths), dtype=torch.float64, device=device)
    folds = np.unique(fold_of)
    if len(folds) < 2:  # the rows are too few, or have equal texts
        return 0.0
    for fold in folds:
        rows, held_out = (data.training.chosen(np.flatnonzero(which)) for which in (fold_of != fold, fold_of == fold))
        outputs = _held_out_outputs(config, replace(data, training=rows), loss, held_out, batch=batch, device=device)
        base = base_outputs(weight, loss, rows).to(outputs)
        labelled = held_out.whole_batch(np.arange(len(held_out)), device)
        for number, strength in enumerate(strengths):
            losses[number] += plain.sum(base + strength * (outputs - base), labelled.labels, labelled.ratings)
    weights = (losses.min() - losses).exp()  # posterior probabilities, up to a factor
    weights[0] *= _ZERO * (len(strengths) - 1)
    return float((weights @ strengths.double()) / weights.sum())


def _plain_loss(positive_weight: float | None, loss: Loss) -> Loss:
    return replace(loss, positive_weight=positive_weight or 1.0)


def _folds(rows: Rows) -> IntArray:
    """Return the fold (n,) of each row, from a checksum of its words."""
    batch = rows.whole_batch(np.arange(len(rows)), torch.device("cpu"))
    texts = np.split(batch.tokens.numpy(), batch.lengths.cumsum(0).numpy()[:-1])
    return np.array([crc32(text.tobytes()) % _FOLDS for text in texts])


def _held_out_outputs(
    config: TrainConfig, data: TextData, loss: Loss, held_out: Rows, *, batch: int, device: torch.device
) -> Tensor:
    """Train a model on the training rows of `data`, and return its outputs (n, outputs) for the rows `held_out`."""
    rows = data.training
    options, data = models.kind(config.model).fit_settings(config.options, data, loss)
    words = len(data.vocabulary) + FIRST_WORD
    model = models.build(config.model, options.model_settings(words=words, outputs=loss.outputs))
    model.to(device)
    constant = loss.constant_outputs(rows.labels, rows.ratings)
    assert data.ngrams is not None
    model.set_ngrams(data.ngrams, constant, constant)
    model.set_vocabulary(data.vocabulary)
    optimiser = Optimiser(model, (), config.optimisation, sparse_tables=model.sparse_tables, row_rates=model.row_rates)
    order = BatchOrder(rows=len(rows), global_batch=batch, seed=config.seed)
    steps = config.optimisation.epochs_for(order.steps) * order.steps
    for step in range(steps):
        texts = rows.whole_batch(order.batch(*divmod(step, order.steps)), device)
        outputs = model(texts.tokens, texts.lengths)
        optimiser.clear()
        (loss.sum(outputs, texts.labels, texts.ratings) / len(outputs)).backward()  # type: ignore[no-untyped-call]
        for table in model.sparse_tables:
            assert table.grad is not None
            table.grad = table.grad.coalesce()
        optimiser.step(learning_rate(config.optimisation, step, steps, order.size(0)))
    model.eval()
    with torch.inference_mode():
        texts = held_out.whole_batch(np.arange(len(held_out)), device)
        held_out_outputs: Tensor = model(texts.tokens, texts.lengths)
    return held_out_outputs
