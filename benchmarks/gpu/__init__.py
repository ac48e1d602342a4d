"""`make gpu`, or `python3 -m benchmarks gpu [PART...]`: all that needs a GPU, on a machine that has one.

It runs with the Python and the PyTorch that are there, and makes its data itself: no set-up, no package index, no file
from elsewhere. Do not import anything else than torch and NumPy: such a machine may lack it.
"""

from benchmarks.gpu.run import main

__all__ = ["main"]
