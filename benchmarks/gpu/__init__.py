"""`make gpu`, or `python3 -m benchmarks gpu [PART...]`: checks and benchmarks for a machine with a GPU.

It runs with the installed Python and PyTorch, and generates its data: no setup, no package index, no other files.
Import only torch, NumPy, safetensors and tqdm: such a machine may lack all other packages.
"""

from benchmarks.gpu.run import main

__all__ = ["main"]
