"""Shoal with a runner and the reference's settings: `python -m benchmarks.peers.shoal RUNNER INPUT OUTPUT`."""

import sys

from corpus.dataset_settings import REFERENCE
from corpus.reading.sources import Inputs
from jobs.pipeline import preprocess_locally

if __name__ == "__main__":
    runner, source, output = sys.argv[1:]
    preprocess_locally(Inputs(files=(source,)), output, settings=REFERENCE, runner=runner)
