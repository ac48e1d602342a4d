"""A program for two ranks: the trainer, with other options on rank 1: those behind `--` on the command line."""

import os
import sys

from trainer.__main__ import main

both, own = sys.argv[: sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :]
sys.argv = both + (own if os.environ["RANK"] == "1" else [])
sys.exit(main())
