"""Shoal with the reference's settings: `python -m benchmarks.peers.shoal INPUT OUTPUT`."""

import sys

from corpus.dataset_settings import REFERENCE
from corpus.reading.sources import Inputs
from jobs.local import preprocess_locally

if __name__ == "__main__":
    source, output = sys.argv[1:]
    preprocess_locally(Inputs(files=(source,)), output, settings=REFERENCE)
