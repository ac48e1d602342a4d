"""Checks that a GPU computes the same as a CPU: gradients, masks, rows and measures.

A GPU's float32 is compared with a CPU's float64, because the difference from a CPU's float32 would be the sum of two
errors.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from shoal_balance import IntArray

from benchmarks.gpu.part import SETTINGS, Outcome, deviation, print_progress
from benchmarks.gpu.rows import VOCABULARY, make_rows
from benchmarks.gpu.texts import WORDS, make_text_rows, spell
from benchmarks.gpu.training import single_rank
from benchmarks.record import table
from corpus.text import FIRST_WORD
from trainer.classification import models
from trainer.classification.evaluate import evaluate
from trainer.classification.losses import Loss, Scale
from trainer.classification.models.classifier import Classifier
from trainer.classification.models.fasttext import FastText
from trainer.classification.models.lstm_options import LSTMOptions
from trainer.classification.models.ngrams import plain_features
from trainer.classification.rows import RaggedRows, Rows, TextRows, WordDropout
from trainer.classification.task import text_gradients
from trainer.clock import StepTimer
from trainer.computing import dropout
from trainer.computing.optimiser import Optimiser
from trainer.computing.precision import NAMES, capability, choose
from trainer.computing.row_gradients import TouchedRows, row_gradient
from trainer.computing.threads import Threads
from trainer.options.optimisation_options import OptimisationOptions

LOSS = Loss(kind="cross-entropy", scale=Scale(1, 5, 4), positive_weight=0.7)
BOUNDS = {"float32": 1e-4, "bfloat16": 3e-2, "float16": 3e-2}
"""Largest ‖found - expected‖ ÷ ‖expected‖ over all gradients together, by precision."""

_CPU = torch.device("cpu")
_BUCKETS, _TOUCHED = 50_000, 5000
_HOLDS = 7  # the rows are computed in pieces of about a seventh


@dataclass(frozen=True)
class Sizes:
    """Amount of computation."""

    rows: int = 2048


class Check(NamedTuple):
    """A comparison with its deviation, and the largest permitted deviation."""

    what: str
    found: float
    bound: float

    @property
    def holds(self) -> bool:
        return self.found <= self.bound  # False for NaN


def measure(device: torch.device, sizes: Sizes) -> Outcome:
    """Run all checks."""
    with single_rank(device):
        found = [*_gradients(device, sizes), *_masks(device), *_resident(device), *_evaluation(device, sizes)]
        found += [*_updates(device), *_whole_texts(device, sizes), *_row_updates(device)]
    rows = [[each.what, f"{each.found:.1e}", f"{each.bound:.0e}", "" if each.holds else "FAILED"] for each in found]
    print_progress(table(["check", "deviation", "bound", ""], rows))
    wrong = [each.what for each in found if not each.holds]
    said = f"{len(found) - len(wrong)} of {len(found)} checks hold" + (f", not: {'; '.join(wrong)}" if wrong else "")
    return Outcome(said=said, figures={"checks": [each._asdict() for each in found]}, failed=bool(wrong))


def new_model(name: str, device: torch.device, dtype: torch.dtype = torch.float32) -> Classifier:
    """Return a model of SETTINGS, with the same weights and masks on any device."""
    options = LSTMOptions(**SETTINGS[name])
    torch.manual_seed(0)
    return models.build("lstm", options.model_settings(words=VOCABULARY + FIRST_WORD, outputs=LOSS.outputs)).to(
        device, dtype
    )


def _gradients(device: torch.device, sizes: Sizes) -> Iterator[Check]:
    """Check gradients of one batch, of unequal shares of it, and of pieces of it, as after a lack of memory."""
    rows = make_rows(sizes.rows, _CPU)
    whole = np.arange(sizes.rows)
    near = rows.copy_to(device) if device.type == "cuda" else rows
    for name in SETTINGS:
        exact = _gradient(new_model(name, _CPU, torch.float64), rows, [whole])
        for precision in dict.fromkeys(("float32", choose("auto", [capability(device)]))):
            model, bound = new_model(name, device), BOUNDS[precision]
            model.precision = NAMES[precision]
            yield Check(f"gradients, {name}, {precision}", deviation(_gradient(model, near, [whole]), exact), bound)
            shares = np.split(whole, [sizes.rows // 9, sizes.rows // 9 + 1, sizes.rows // 2])
            found = _gradient(model, near, shares)
            yield Check(f"gradients of unequal shares, {name}, {precision}", deviation(found, exact), bound)
            model.register_forward_pre_hook(_full_above(sizes.rows // _HOLDS))
            found = _gradient(model, near, [whole])
            yield Check(f"gradients in pieces, {name}, {precision}", deviation(found, exact), bound)


def _gradient(model: Classifier, rows: Rows, shares: list[IntArray]) -> torch.Tensor:
    """Return all gradients as one vector: the sum over these shares of a global batch."""
    model.zero_grad()
    timer = StepTimer()
    compute = text_gradients(model, rows, loss=LOSS, device=next(model.parameters()).device, timer=timer)
    found = []
    for numbers in shares:
        timer.begin(len(numbers))
        model.zero_grad()
        compute(numbers, sum(map(len, shares)), 3)
        compute.set_table_gradients()
        gradients = [each.grad.to_dense() for each in model.parameters() if each.grad is not None]
        found.append(torch.cat([each.flatten().double() for each in gradients]))
    return torch.stack(found).sum(0)


def _full_above(holds: int) -> Any:
    """Return a model hook that simulates full memory above a number of rows."""

    def look(_model: torch.nn.Module, inputs: tuple[Any, ...]) -> None:
        if len(inputs[0]) > holds:
            raise torch.OutOfMemoryError("CUDA out of memory")

    return look


def _masks(device: torch.device) -> Iterator[Check]:
    torch.manual_seed(0)
    places, values = dropout.Dropout(0.5, 64), torch.rand(9, 300, 64)
    keys = torch.from_numpy(dropout.keys(1, 2, np.arange(300)))
    expected = torch.stack([places(values, keys), places.at_each_time(values, keys)])
    places, values, keys = places.to(device), values.to(device), keys.to(device)
    found = torch.stack([places(values, keys), places.at_each_time(values, keys)]).cpu()
    yield Check("masks of dropout", float((found != expected).sum()), 0)


def _resident(device: torch.device) -> Iterator[Check]:
    """Check batches and ids of fixed and ragged rows on the device, with dropped words."""
    generator = np.random.default_rng(0)
    kinds: tuple[Any, ...] = (np.uint16, np.uint32)
    for kind, (shortest, longest) in product(kinds, ((1, 9), (30, 40))):
        lengths = generator.integers(shortest, longest + 1, 500)
        real = np.arange(longest) < lengths[:, None]
        most = np.iinfo(kind).max // (1 if kind is np.uint16 else 2)
        tokens: npt.NDArray[Any] = (generator.integers(1, most, real.shape) * real).astype(kind)
        labels = np.zeros(500, np.uint8)
        fixed = TextRows(tokens=tokens, lengths=lengths.astype(np.uint16), labels=labels, ratings=labels)
        ragged = RaggedRows(
            tokens=tokens[real], lengths=lengths.astype(np.uint32), ends=lengths.cumsum(), row_length=longest,
            labels=labels, ratings=labels,
        )  # fmt: skip
        numbers = generator.permutation(500)[:200]
        dropped: dict[str, Any] = {"keys": dropout.keys(0, 1, numbers), "words": WordDropout(0.2, longest, 0)}
        ways: tuple[dict[str, Any], ...] = ({}, dropped)
        off = 0
        for rows, how in product((fixed, ragged), ways):
            near = rows.copy_to(device)
            found = near.batch(numbers, device, **how).tokens.cpu()
            off += int((rows.batch(numbers, _CPU, **how).tokens != found).sum())
            off += len(np.setxor1d(rows.ids(numbers, 40_000), near.ids(numbers, 40_000)))
        yield Check(f"rows on the device, {np.dtype(kind)}, of {shortest} to {longest} words", off, 0)


def _evaluation(device: torch.device, sizes: Sizes) -> Iterator[Check]:
    rows = make_rows(sizes.rows, _CPU, seed=1)
    for name in SETTINGS:
        results = [
            evaluate(
                new_model(name, where),
                on,
                split=np.array([len(rows)]),
                loss=LOSS,
                threads=Threads(1),
                stop=lambda: False,
            )
            for where, on in ((_CPU, rows), (device, replace(rows, device_tokens=rows.copy_to(device).device_tokens)))
        ]
        assert results[0] is not None
        assert results[1] is not None
        (expected, matrix, *_), (found, other, *_) = results[0], results[1]
        yield Check(f"evaluation, {name}: loss", abs(found - expected) / expected, BOUNDS["float32"])
        moved = float(np.abs(np.array(matrix.counts) - np.array(other.counts)).sum()) / 2
        yield Check(f"evaluation, {name}: rows classified otherwise", moved / len(rows), 1e-3)


def _updates(device: torch.device) -> Iterator[Check]:
    """Check three steps of each optimiser with the same gradients."""
    for kind in ("adam", "adagrad", "sgd"):
        weights = []
        for where in (_CPU, device):
            model = copy.deepcopy(new_model("default", _CPU)).to(where)
            optimiser = Optimiser(model, model.tables, OptimisationOptions(optimiser=kind))
            generator = torch.Generator().manual_seed(0)
            for _ in range(3):
                for each in model.parameters():
                    each.grad = torch.randn(each.shape, generator=generator).to(where)
                optimiser.step(0.01)
            weights.append(torch.cat([each.detach().flatten().cpu() for each in model.parameters()]))
        yield Check(f"steps of {kind}", deviation(weights[1], weights[0]), 1e-6)


def _new_fasttext(device: torch.device, dtype: torch.dtype = torch.float32) -> FastText:
    """Return fastText's model with the same weights on any device.

    Its last layer is random, because with the usual zeros the vectors' gradients would be zero.
    """
    torch.manual_seed(0)
    sizes = {"words": WORDS + FIRST_WORD, "embedding": 10, "buckets": _BUCKETS, "outputs": LOSS.outputs}
    model = FastText(**sizes, ngrams=2, dropout=0.3)
    torch.nn.init.normal_(model.last.weight)
    model.set_vocabulary([spell(word) for word in range(WORDS)])
    return model.to(device, dtype)


def _whole_texts(device: torch.device, sizes: Sizes) -> Iterator[Check]:
    """Check gradients of the table rows that a batch of whole texts touches, in one batch and in shares."""
    rows, whole = make_text_rows(sizes.rows), np.arange(sizes.rows)
    rows = replace(rows, ratings=4 * rows.labels + 1)
    near = rows.copy_to(device) if device.type == "cuda" else rows
    exact = _plain_gradient(_new_fasttext(_CPU, torch.float64), rows)
    model, shares = _new_fasttext(device), np.split(whole, [sizes.rows // 9, sizes.rows // 2])
    for what, parts in (("gradients", [whole]), ("gradients of unequal shares", shares)):
        found = deviation(_gradient(model, near, parts), exact)
        yield Check(f"{what}, fasttext, float32", found, BOUNDS["float32"])


def _plain_gradient(model: FastText, rows: Rows) -> torch.Tensor:
    """Return all gradients of all rows as one vector with dense tables, by torch's own mean of vectors on a CPU."""
    batch = rows.whole_batch(np.arange(len(rows)), _CPU, keys=dropout.keys(0, 3, np.arange(len(rows))))
    hashes = model.hashes.tolist()
    texts = batch.tokens.split(batch.lengths.tolist())
    found = [plain_features(text.tolist(), hashes, ngrams=2, buckets=_BUCKETS) for text in texts]
    starts = torch.tensor([0, *map(len, found[:-1])]).cumsum(0)
    ids = torch.tensor([row for text in found for row in text])
    means = torch.nn.functional.embedding_bag(ids, model.vectors, starts, mode="mean")
    outputs = model.last(model.dropout(means, batch.keys))
    loss = LOSS.sum(outputs, batch.labels, batch.ratings) / len(rows)
    return torch.cat([each.flatten() for each in torch.autograd.grad(loss, list(model.parameters()))])


def _row_updates(device: torch.device) -> Iterator[Check]:
    """Check three steps of each optimiser on some rows of a table against torch's steps on the whole table.

    The numbers of a row have equal size, so that Adagrad's single rate for a row equals that of each number.
    """
    for kind in ("adam", "adagrad", "sgd"):
        weights = []
        config = OptimisationOptions(optimiser=kind, momentum=0.0)
        for where, sparse in ((_CPU, False), (device, True)):
            model = _new_fasttext(where)
            table, none = (model.vectors,), ()
            optimiser = Optimiser(model, none if sparse else table, config, sparse_tables=table if sparse else none)
            generator = torch.Generator().manual_seed(0)
            chosen = torch.randperm(len(model.vectors), generator=generator)[:_TOUCHED]
            for _ in range(3):
                signs = torch.randint(2, (_TOUCHED, model.vectors.shape[1]), generator=generator) * 2 - 1
                values = signs * torch.randn((_TOUCHED, 1), generator=generator)
                gradient = row_gradient(model.vectors, TouchedRows(chosen.to(where), values.to(where)))
                model.vectors.grad = gradient if sparse else gradient.to_dense()
                model.last.weight.grad = torch.randn(model.last.weight.shape, generator=generator).to(where)
                optimiser.step(0.01)
            weights.append(torch.cat([each.detach().flatten().cpu() for each in model.parameters()]))
        yield Check(f"steps of {kind} on rows of a table", deviation(weights[1], weights[0]), 1e-6)
