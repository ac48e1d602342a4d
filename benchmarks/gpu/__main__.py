"""`python -m benchmarks.gpu MODULE FILE`: run one part in this process, and write its outcome to FILE."""

import ctypes
import os
import signal
import sys
import traceback
from importlib import import_module
from pathlib import Path

_SET_PARENT_DEATH_SIGNAL = 1


def main() -> int:
    """Measure on the GPU, or on the CPU without a GPU. Return 1 if the part failed."""
    module, outcome_path = sys.argv[1:]
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)  # end with the parent
    import torch

    from benchmarks.gpu.part import OutcomeFile

    OutcomeFile.path = Path(outcome_path)
    part = import_module(f"benchmarks.gpu.{module}")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    outcome = part.measure(device, part.Sizes())
    OutcomeFile.write(outcome)
    return int(outcome.failed)


if __name__ == "__main__":
    try:
        status = main()
    except Exception:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # a normal exit would wait for collectives that may never end
