"""`python -m benchmarks.peers.fasttext_predict MODEL FILE`: labels texts by the C++ program, as `shoal predict` prints.

Each line of the file is a text whose words are separated already. The program is given a few thousand at a time.
"""

import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

_BLOCK = 8192


def main(arguments: Sequence[str]) -> None:
    """Print a line for each text: its label, the label's probability, and the text."""
    import fasttext  # of requirements-bench.txt

    model_file, texts_file = arguments
    model = fasttext.load_model(model_file)
    with Path(texts_file).open(encoding="utf-8") as lines:
        while some := [line.rstrip("\n") for line in islice(lines, _BLOCK)]:
            labels, probabilities = model.predict(some)
            sys.stdout.writelines(
                f"{label}\t{probability:.4f}\t{text}\n"
                for (label,), (probability,), text in zip(labels, probabilities, some, strict=True)
            )


if __name__ == "__main__":
    main(sys.argv[1:])
