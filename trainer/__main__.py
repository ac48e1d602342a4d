"""`python -m trainer`: one rank of a training run. Exit status 0, 1 for a run that failed, 2 for wrong use.

The first rank alone says what went wrong; an error on any rank is every rank's (ranks.py). A run that was asked to stop
has ended well: it exits 0, with `"stopped": true` in its summary.
"""

import os
import sys

from corpus.errors import DataError
from trainer.config import parse
from trainer.errors import TrainingError


def main() -> int:
    config = parse()
    from trainer.loop import train
    from trainer.ranks import join

    try:
        with join(config.threads) as ranks:
            train(config, ranks)
    except (TrainingError, DataError) as error:
        if os.environ.get("RANK", "0") == "0":
            sys.stderr.write(f"trainer: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
