"""The recurrence of benchmarks/gpu/recurrence.py, without a GPU: its results in Triton's interpreter are those of
nn.LSTM in float64, and as GPUs get it no value is spilled from its registers to memory."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

CASES = [(16, 5, 16), (37, 7, 32), (3, 4, 16)]
"""Rows, which need not be a multiple of 16; times; hidden units."""
_OWN = {90: "a"}
"""What the name of a capability has besides, where Triton takes instructions of that one alone."""


def compare(rows: int, times: int, hidden: int, own: bool) -> None:
    """The states and gradients of ragged rows, one of them of length 1; in the interpreter."""
    from benchmarks.gpu.recurrence import Recurrence

    generator = torch.Generator().manual_seed(rows)
    lengths = torch.randint(1, times + 1, (rows,), generator=generator).sort(descending=True)[0]
    lengths[0], lengths[-1] = times, 1
    words, (table, weights) = 50, (torch.randn(n, 4 * hidden, generator=generator) for n in (50, hidden))
    index = torch.randint(words, (times, rows), generator=generator)
    pooled = torch.randn(times, rows, hidden, generator=generator)
    pooled *= (torch.arange(times)[:, None] < lengths)[:, :, None]

    ours = [each.clone().requires_grad_() for each in (table, weights.T.contiguous())]
    gates = ours[0][index].view(-1, 4 * hidden) if own else ours[0]
    numbers = torch.arange(times * rows).view(times, rows) if own else index
    states = Recurrence.apply(gates, numbers.int(), lengths, ours[1], "ieee", own)
    (states * pooled).sum().backward()

    lstm = torch.nn.LSTM(4 * hidden, hidden, bias=False).double()
    theirs = table.double().requires_grad_()
    with torch.no_grad():
        lstm.weight_ih_l0.copy_(torch.eye(4 * hidden))
        lstm.weight_hh_l0.copy_(weights.T)
    expected = lstm(theirs[index])[0]
    (expected * pooled).sum().backward()

    real = pooled != 0
    torch.testing.assert_close(states[real], expected[real].float(), rtol=1e-5, atol=1e-5)
    assert not states[~real].any()
    for one, other in zip(ours, (theirs.grad, lstm.weight_hh_l0.grad), strict=True):
        assert other is not None
        torch.testing.assert_close(one.grad, other.float(), rtol=1e-4, atol=1e-4)


def spills(capability: int, folder: Path) -> dict[str, int]:
    """The bytes that each kernel spills, as compiled for a GPU of this capability."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from benchmarks.gpu import recurrence

    assembler = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas-blackwell"  # the newer of both
    kinds, found = {"rows": "i32", "index": "*i32", "lengths": "*i64"}, {}
    for kernel in (recurrence._forward, recurrence._backward):
        for precision in ("ieee", "tf32"):
            fixed = {"hidden": 32, "block": recurrence.ROWS, "precision": precision}
            signature = {name: "constexpr" if name in fixed else kinds.get(name, "*fp32") for name in kernel.arg_names}
            constants = {(place,): fixed[name] for place, name in enumerate(kernel.arg_names) if name in fixed}
            compiled = triton.compile(
                ASTSource(kernel, signature, constants),
                target=GPUTarget("cuda", capability, 32),
                options={"num_warps": recurrence.WARPS},
            )
            (folder / "kernel.ptx").write_text(compiled.asm["ptx"])
            said = subprocess.run(
                [
                    assembler,
                    "-v",
                    f"-arch=sm_{capability}{_OWN.get(capability, '')}",
                    folder / "kernel.ptx",
                    "-o",
                    os.devnull,
                ],
                stderr=subprocess.PIPE,
                text=True,
                check=True,
            ).stderr
            stores = re.search(r"(\d+) bytes spill stores", said)
            assert stores is not None
            found[f"{kernel.__name__} {precision}"] = int(stores[1])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("own", [False, True], ids=["gates by word", "gates of every word"])
@pytest.mark.parametrize(("rows", "times", "hidden"), CASES)
def test_the_recurrence_is_that_of_an_lstm_in_float64(rows: int, times: int, hidden: int, own: bool) -> None:
    pytest.importorskip("triton", reason="requirements-bench.txt is not installed")
    # Triton looks at the variable when it is imported.
    code = f"from {__name__} import compare; compare({rows}, {times}, {hidden}, {own})"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "TRITON_INTERPRET": "1"}, check=True)


@pytest.mark.slow
@pytest.mark.parametrize("capability", [80, 90])
def test_its_kernels_spill_no_registers(capability: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton", reason="requirements-bench.txt is not installed")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    found = spills(capability, tmp_path)
    assert len(found) == 4
    assert not any(found.values()), found
