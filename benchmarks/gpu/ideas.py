"""Ideas that may be worth building, each beside the present way: first the results are compared, then milliseconds.

Compare an idea with a way that does no more. A table of gates by word cannot have dropout that differs by row, so it is
compared with gates that are computed for every word of every text.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.gpu.checks import LOSS, new_model
from benchmarks.gpu.part import Budget, Outcome, deviation, milliseconds, print_progress
from benchmarks.gpu.rows import make_rows
from benchmarks.record import table
from trainer.classification.models.classifier import Classifier
from trainer.classification.rows import TextBatch, TextRows
from trainer.computing import dropout
from trainer.computing.optimiser import Optimiser
from trainer.computing.precision import loss_scale
from trainer.config import TrainConfig


@dataclass(frozen=True)
class Sizes:
    """What is measured."""

    batches: tuple[int, ...] = (1024, 16_384, 65_536)
    widths: tuple[int, ...] = (25, 50, 100)
    rows: int = 1_000_000
    repeats: int = 10
    seconds: float = 70


class Found(NamedTuple):
    """An idea in one case: milliseconds of both ways, how far the idea's result is off, and how far it may be."""

    idea: str
    case: str
    present: float
    instead: float
    off: float
    bound: float


def measure(device: torch.device, sizes: Sizes) -> Outcome:
    """Measure every idea. If one fails, the reason is printed, and the others go on."""
    budget, found, failed = Budget(sizes.seconds), [], []
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False  # as in the trainer's ranks
    rows = make_rows(sizes.rows, device)
    near = rows.copy_to(device)
    for (name, idea), batch in product(IDEAS.items(), sizes.batches):
        if name in failed or not budget.left:
            continue
        try:
            for each in idea(near, device, batch, sizes):
                found.append(each)
                off = f"off by {each.off:.1e}" + ("" if each.off <= each.bound else ", WRONG")
                print_progress(f"{each.idea}, {each.case}: {each.present:.3f} ms now, {each.instead:.3f} then, {off}")
        except Exception as error:
            failed.append(name)
            print_progress(f"{name} failed: {type(error).__name__}: {error}")
    wrong = [f"{each.idea}, {each.case}" for each in found if not each.off <= each.bound]
    cells = [[e.idea, e.case, f"{e.present:.3f}", f"{e.instead:.3f}", f"{e.off:.0e}"] for e in found]
    print_progress("\n" + table(["idea", "case", "ms now", "ms instead", "off by"], cells))
    best = max(found, key=lambda each: each.present / each.instead)
    said = f"{len(found)} cases; the best gain {best.present / best.instead:.2f}, {best.idea} ({best.case})"
    for what, names in (("failed", failed), ("wrong", wrong)):
        said += f"; {what}: {', '.join(names)}" if names else ""
    return Outcome(said=said, figures={"found": [each._asdict() for each in found]}, failed=bool(failed or wrong))


def _auto(device: torch.device) -> torch.dtype:
    """What `--precision auto` chooses on a fast GPU. A CPU without AVX-512 has no LSTM in 16 bits (oneDNN)."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def _batch(rows: TextRows, numbers: Any, device: torch.device) -> tuple[TextBatch, Tensor]:
    batch = rows.batch(numbers, device, keys=dropout.keys(0, 1, numbers))
    assert batch.keys is not None
    return batch, batch.keys


def halves(rows: TextRows, device: torch.device, batch: int, sizes: Sizes) -> Iterator[Found]:
    """Word vectors in 16 bits from the table on, in place of 32 bits up to the LSTM."""
    kind = torch.float16 if device.type == "cuda" else torch.float32
    some, keys = _batch(rows, np.arange(batch), device)
    exact, now, so = (new_model("default", device) for _ in range(3))
    now.precision = so.precision = _auto(device)
    half: Any = so.embedding
    half.forward = lambda ids: F.embedding(ids, half.weight.to(kind), half.padding_idx)
    off = deviation(_gradient(so, some, keys), _gradient(exact, some, keys))
    present, instead = (
        milliseconds(partial(_backward, model, some, keys), device, repeats=sizes.repeats) for model in (now, so)
    )
    yield Found("vectors in 16 bits", f"{batch:,}", present, instead, off, 3e-2)


def tf32(rows: TextRows, device: torch.device, batch: int, sizes: Sizes) -> Iterator[Found]:
    """All in 32 bits with cuDNN's tensor cores, in place of autocast to 16 bits."""
    some, keys = _batch(rows, np.arange(batch), device)
    exact, now, so = (new_model("default", device) for _ in range(3))
    now.precision = _auto(device)
    expected = _gradient(exact, some, keys)
    present = milliseconds(partial(_backward, now, some, keys), device, repeats=sizes.repeats)
    try:
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
        off = deviation(_gradient(so, some, keys), expected)
        instead = milliseconds(partial(_backward, so, some, keys), device, repeats=sizes.repeats)
    finally:
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    yield Found("tf32 in place of 16 bits", f"{batch:,}", present, instead, off, 3e-2)


def groups(rows: TextRows, device: torch.device, batch: int, sizes: Sizes) -> Iterator[Found]:
    """Groups of rows of similar length, as on a CPU, in place of one that is padded to the longest row."""
    some, keys = _batch(rows, np.arange(batch), device)
    longest_first = some.lengths.tolist()
    now, so = (new_model("default", device) for _ in range(2))
    now.precision = so.precision = _auto(device)
    whole = so.classify
    expected = _gradient(now, some, keys)
    present = milliseconds(partial(_backward, now, some, keys), device, repeats=sizes.repeats)
    for count in _GROUPS:
        size = -(-batch // count)

        def in_groups(tokens: Tensor, lengths: Tensor, keys: Tensor, size: int = size) -> Tensor:
            parts = zip(tokens.split(size), lengths.split(size), keys.split(size), longest_first[::size], strict=True)
            return torch.cat([whole(ids[:, :most], long, key) for ids, long, key, most in parts])

        with mock.patch.object(so, "classify", in_groups):
            off = deviation(_gradient(so, some, keys), expected)
            instead = milliseconds(partial(_backward, so, some, keys), device, repeats=sizes.repeats)
        yield Found("groups of similar length", f"{batch:,}, {count} groups", present, instead, off, 3e-2)


def _backward(model: Classifier, batch: TextBatch, keys: Tensor) -> None:
    for each in model.parameters():
        each.grad = None
    scale = loss_scale(model.precision, len(batch))
    loss = LOSS.sum(model(batch.tokens, batch.lengths, keys), batch.labels, batch.ratings) / len(batch)
    (loss * scale).backward()


def _gradient(model: Classifier, batch: TextBatch, keys: Tensor) -> Tensor:
    _backward(model, batch, keys)
    scale = loss_scale(model.precision, len(batch))
    return torch.cat([each.grad.flatten() / scale for each in model.parameters() if each.grad is not None])


def recurrence(rows: TextRows, device: torch.device, batch: int, sizes: Sizes) -> Iterator[Found]:
    """Embedding and LSTM in a kernel of our own (recurrence.py): gates by word, or for every word of a text."""
    if device.type != "cuda" or find_spec("triton") is None:
        print_progress("a recurrence of our own: left out, as it needs a GPU and triton")
        return
    yield from recurrences(rows, device, batch, sizes.repeats)


def recurrences(rows: TextRows, device: torch.device, batch: int, repeats: int) -> Iterator[Found]:
    """The same for one batch: exact, beside nn.LSTM in float32, and in tf32, beside it in 16 bits."""
    from benchmarks.gpu import recurrence

    some = rows.batch(np.arange(batch), device)
    tokens, lengths = some.tokens.t().contiguous(), some.lengths.int()
    torch.manual_seed(0)
    embedding, lstm = torch.nn.Embedding(10_002, 64).to(device), torch.nn.LSTM(64, 32).to(device)
    weights = [embedding.weight, *lstm.parameters()]
    real = (torch.arange(len(tokens), device=device)[:, None] < lengths)[:, :, None]
    upwards = torch.randn(*tokens.shape, 32, device=device) * real
    index = torch.arange(tokens.numel(), device=device, dtype=torch.int32).view_as(tokens)

    by_name = dict(lstm.named_parameters())

    def gates(inputs: Tensor) -> Tensor:
        return F.linear(inputs, by_name["weight_ih_l0"], by_name["bias_ih_l0"] + by_name["bias_hh_l0"])

    def by_word(precision: str) -> Tensor:
        own = gates(embedding.weight)
        states: Tensor = recurrence.Recurrence.apply(own, tokens, lengths, lstm.weight_hh_l0, precision, False)
        return states

    def by_place(precision: str) -> Tensor:
        own = gates(embedding(tokens)).flatten(0, 1)
        states: Tensor = recurrence.Recurrence.apply(own, index, lengths, lstm.weight_hh_l0, precision, True)
        return states

    def backward(states: Callable[[], Tensor]) -> None:
        for each in weights:
            each.grad = None
        (states() * upwards).sum().backward()

    def gradient(states: Callable[[], Tensor]) -> Tensor:
        backward(states)
        return torch.cat([each.grad.flatten() for each in weights if each.grad is not None])

    def in_halves() -> Tensor:
        with torch.autocast(device.type, torch.bfloat16):
            states: Tensor = lstm(embedding(tokens))[0].float()
        return states

    exact = gradient(lambda: lstm(embedding(tokens))[0])
    present = {
        "ieee": milliseconds(lambda: backward(lambda: lstm(embedding(tokens))[0]), device, repeats=repeats),
        "tf32": milliseconds(lambda: backward(in_halves), device, repeats=repeats),
    }
    usual = recurrence.ROWS, recurrence.WARPS
    others = [shape for shape in product((16, 32), (2, 4, 8)) if shape != usual]
    ways = {"by word": by_word, "by place": by_place}
    try:
        for name, precision, shape in (*product(ways, present, [usual]), *product(["by place"], ["tf32"], others)):
            recurrence.ROWS, recurrence.WARPS = shape
            states = partial(ways[name], precision)
            off = deviation(gradient(states), exact)
            instead = milliseconds(partial(backward, states), device, repeats=repeats)
            case = f"{batch:,}, {name}, {precision}, {shape[0]} rows and {shape[1]} warps"
            yield Found("a recurrence of our own", case, present[precision], instead, off, _ROUNDING[precision])
    finally:
        recurrence.ROWS, recurrence.WARPS = usual


_GROUPS = (2, 4)
_ROUNDING = {"ieee": 5e-5, "tf32": 3e-2}


def graphs(rows: TextRows, device: torch.device, batch: int, sizes: Sizes) -> Iterator[Found]:
    """A whole step with the optimiser as a CUDA graph, one for each width to which batches are padded."""
    if device.type != "cuda":
        print_progress("CUDA graphs: left out, as they need a GPU")
        return
    for width in sizes.widths:
        fitting = np.flatnonzero(rows.lengths <= width)[:batch]
        some, keys = _batch(rows, np.resize(fitting, batch), device)
        eager, captured = new_model("default", device), new_model("default", device)
        eager.precision = captured.precision = _auto(device)
        present = milliseconds(_step(eager, some, keys), device, repeats=sizes.repeats)
        graph = _captured(_step(captured, some, keys))
        instead = milliseconds(graph.replay, device, repeats=sizes.repeats)
        eager.load_state_dict(captured.state_dict())
        expected = _gradient(eager, some, keys)
        graph.replay()
        found = torch.cat([each.grad.flatten() for each in captured.parameters() if each.grad is not None])
        off = deviation(found / loss_scale(captured.precision, batch), expected)
        yield Found("CUDA graphs", f"{batch:,} rows, {width} words", present, instead, off, 1e-2)


def _captured(step: Callable[[], None]) -> torch.cuda.CUDAGraph:
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def _step(model: Classifier, batch: TextBatch, keys: Tensor) -> Callable[[], None]:
    optimiser = Optimiser(model, model.tables, TrainConfig(data=Path(), output=Path()))

    def step() -> None:
        _backward(model, batch, keys)
        optimiser.step(1e-4)

    return step


Idea = Callable[[TextRows, torch.device, int, Sizes], Iterator[Found]]
IDEAS: dict[str, Idea] = {
    "halves": halves,
    "recurrence": recurrence,
    "tf32": tf32,
    "groups": groups,
    "graphs": graphs,
}
"""A capture that fails may disturb what runs after it, so graphs come last."""
