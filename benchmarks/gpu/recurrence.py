"""An LSTM's recurrence in one kernel, forward and backward: gates by number, so that equal words share theirs.

The gates' inputs are the rows of a table, `gates` (N, 4 x hidden), and `index` (times, rows) says which of them comes
when. A word's gates are its vector x the input weights (+ biases): a table of words is made once a step, and no vector
of a word in a text is ever written; or there are gates for every word of every text, where dropout makes them differ.
A program of the kernel takes a few rows through all their times, with its weights and states in registers. Rows come
the longest first, so its rows are about as long, and it ends with the longest of them.

What comes after a row's length is 0, or has no meaning; its gradient has to be 0, as it is where only real words are
pooled. In float32 use "ieee", which is exact, and not the tensor cores' tf32.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS = 16
"""Of a program: the least that tl.dot takes."""
WARPS = 8
"""Of a program: with 4 the backward kernel has more values than registers."""


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def _tanh(x):
    return 2.0 / (1.0 + tl.exp(-2.0 * x)) - 1.0


@triton.jit
def _weights(weights, gate: tl.constexpr, hidden: tl.constexpr):
    """(hidden in, hidden out) of one gate, of nn.LSTM's `weight_hh` (4 x hidden out, hidden in)."""
    unit = tl.arange(0, hidden)
    return tl.load(weights + (gate * hidden + unit[None, :]) * hidden + unit[:, None])


@triton.jit
def _gate(gates, word, h, w, gate: tl.constexpr, hidden: tl.constexpr, real, precision: tl.constexpr):
    """(rows, hidden): the input of a gate, from its words and the states before."""
    unit = tl.arange(0, hidden)
    at = gates + word[:, None] * (4 * hidden) + gate * hidden + unit[None, :]
    told = tl.load(at, mask=real[:, None], other=0.0).to(tl.float32)
    return told + tl.dot(h, w, input_precision=precision)


@triton.jit
def _forward(
    gates, index, lengths, weights, states, cells, rows,
    hidden: tl.constexpr, block: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * block + tl.arange(0, block)
    unit = tl.arange(0, hidden)
    real = row < rows
    length = tl.load(lengths + row, mask=real, other=0)
    w_i, w_f = _weights(weights, 0, hidden), _weights(weights, 1, hidden)
    w_g, w_o = _weights(weights, 2, hidden), _weights(weights, 3, hidden)
    h = tl.zeros((block, hidden), dtype=tl.float32)
    c = tl.zeros((block, hidden), dtype=tl.float32)
    for t in range(tl.load(lengths + tl.program_id(0) * block)):
        inside = t < length
        word = tl.load(index + t * rows + row, mask=inside, other=0).to(tl.int64)
        i = _sigmoid(_gate(gates, word, h, w_i, 0, hidden, inside, precision))
        f = _sigmoid(_gate(gates, word, h, w_f, 1, hidden, inside, precision))
        g = _tanh(_gate(gates, word, h, w_g, 2, hidden, inside, precision))
        o = _sigmoid(_gate(gates, word, h, w_o, 3, hidden, inside, precision))
        c = f * c + i * g
        h = o * _tanh(c)
        at = (t * rows + row).to(tl.int64)[:, None] * hidden + unit[None, :]
        tl.store(states + at, h, mask=inside[:, None])
        tl.store(cells + at, c, mask=inside[:, None])


@triton.jit
def _backward(
    gates, index, lengths, weights, states, cells, d_states, d_gates, rows,
    hidden: tl.constexpr, block: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * block + tl.arange(0, block)
    unit = tl.arange(0, hidden)
    real = row < rows
    length = tl.load(lengths + row, mask=real, other=0)
    w_i, w_f = _weights(weights, 0, hidden), _weights(weights, 1, hidden)
    w_g, w_o = _weights(weights, 2, hidden), _weights(weights, 3, hidden)
    dh = tl.zeros((block, hidden), dtype=tl.float32)
    dc = tl.zeros((block, hidden), dtype=tl.float32)
    most = tl.load(lengths + tl.program_id(0) * block)
    for back in range(most):
        t = most - 1 - back
        inside = t < length
        word = tl.load(index + t * rows + row, mask=inside, other=0).to(tl.int64)
        at = (t * rows + row).to(tl.int64)[:, None] * hidden + unit[None, :]
        later = (inside & (tl.zeros_like(row) + t > 0))[:, None]  # not of a scalar: the interpreter refuses that
        h = tl.load(states + at - rows * hidden, mask=later, other=0.0)
        c = tl.load(cells + at - rows * hidden, mask=later, other=0.0)
        tanh_c = _tanh(tl.load(cells + at, mask=inside[:, None], other=0.0))
        i = _sigmoid(_gate(gates, word, h, w_i, 0, hidden, inside, precision))
        f = _sigmoid(_gate(gates, word, h, w_f, 1, hidden, inside, precision))
        g = _tanh(_gate(gates, word, h, w_g, 2, hidden, inside, precision))
        o = _sigmoid(_gate(gates, word, h, w_o, 3, hidden, inside, precision))
        dh += tl.load(d_states + at, mask=inside[:, None], other=0.0)
        d_o = dh * tanh_c * o * (1.0 - o)
        dc += dh * o * (1.0 - tanh_c * tanh_c)
        d_i = dc * g * i * (1.0 - i)
        d_f = dc * c * f * (1.0 - f)
        d_g = dc * i * (1.0 - g * g)
        dc = dc * f
        to = d_gates + (t * rows + row).to(tl.int64)[:, None] * (4 * hidden) + unit[None, :]
        tl.store(to, d_i, mask=inside[:, None])
        tl.store(to + hidden, d_f, mask=inside[:, None])
        tl.store(to + 2 * hidden, d_g, mask=inside[:, None])
        tl.store(to + 3 * hidden, d_o, mask=inside[:, None])
        dh = tl.dot(d_i, tl.trans(w_i), input_precision=precision)
        dh += tl.dot(d_f, tl.trans(w_f), input_precision=precision)
        dh += tl.dot(d_g, tl.trans(w_g), input_precision=precision)
        dh += tl.dot(d_o, tl.trans(w_o), input_precision=precision)


class Recurrence(torch.autograd.Function):
    """`gates` (N, 4 x hidden), `index` (times, rows) int32, `lengths` (rows,) int32 falling, `weights` (4 x hidden,
    hidden): states (times, rows, hidden), those of nn.LSTM up to each row's length, and 0 after it. All of float32.

    With `own` each time of each row has gates of its own, in that order, and `index` counts them."""

    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, index: Tensor, lengths: Tensor, weights: Tensor, precision: str, own: bool
    ) -> Tensor:
        (times, rows), hidden = index.shape, weights.shape[1]
        states, cells = (torch.zeros(times, rows, hidden, device=gates.device) for _ in range(2))
        grid = (triton.cdiv(rows, ROWS),)
        _forward[grid](
            gates, index, lengths, weights, states, cells, rows,
            hidden=hidden, block=ROWS, precision=precision, num_warps=WARPS,
        )  # fmt: skip
        ctx.save_for_backward(gates, index, lengths, weights, states, cells)
        ctx.precision, ctx.own = precision, own
        return states

    @staticmethod
    def backward(ctx: Any, *d_outputs: Tensor) -> tuple[Tensor | None, ...]:
        gates, index, lengths, weights, states, cells = ctx.saved_tensors
        (times, rows), hidden = index.shape, weights.shape[1]
        d_gates = torch.zeros(times, rows, 4 * hidden, device=gates.device)
        _backward[(triton.cdiv(rows, ROWS),)](
            gates, index, lengths, weights, states, cells, d_outputs[0].contiguous(), d_gates, rows,
            hidden=hidden, block=ROWS, precision=ctx.precision, num_warps=WARPS,
        )  # fmt: skip
        # Not in the kernel: sums of weights take registers that it needs, and atomic ones come in any order.
        d_weights = d_gates[1:].flatten(0, 1).T @ states[:-1].flatten(0, 1)
        if ctx.own:
            return d_gates.view_as(gates), None, None, d_weights, None, None
        d_table = torch.ops.aten.embedding_dense_backward(d_gates, index, len(gates), -1, False)
        return d_table, None, None, d_weights, None, None
