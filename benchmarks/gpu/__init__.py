"""`make gpu`, or `python3 -m benchmarks gpu [PART...]`: all that needs a GPU, on a machine that has one.

It runs with the installed Python and PyTorch, and generates its data: no set-up, no package index, no other files. Do
not import anything other than torch, NumPy, safetensors and tqdm: such a machine may lack it.
"""

from benchmarks.gpu.run import main

__all__ = ["main"]
