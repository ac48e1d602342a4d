"""Trains a model on raw reviews and predicts with it: `python examples/reviews_to_predictions.py REVIEWS... OUTPUT`.

REVIEWS are files for `shoal preprocess`, such as JSON lines with a text and a rating. OUTPUT is a folder for the
dataset and the model. docs/how-to/use-from-python.md explains each step.
"""

import sys
from pathlib import Path

from shoal import load_model, preprocess, train

TEXTS = ("It broke after a week.", "The best lamp that I ever had!")


def main(reviews: list[str], output: Path) -> None:
    dataset = preprocess(reviews, output / "data")
    print(f"{dataset.counts['distinct']:,} distinct texts in {dataset.dataset}")

    summary = train(dataset.dataset, output / "model")
    print(f"accuracy {summary['accuracy']:.1%} (majority class: {summary['majority']:.1%})")

    model = load_model(output / "model")
    for text, prediction in zip(TEXTS, model.predict(TEXTS), strict=True):
        print(f"{prediction.probability:.2f}  {text}")


if __name__ == "__main__":
    *given, folder = sys.argv[1:]
    main(given, Path(folder))
