"""Accuracy on test rows by global batch, with and without the settings for large batches.

    python -m benchmarks large_batch [DATASET] [--seeds 3] [--batches 128 512 ...]

Every run sees each row six times, so larger batches mean fewer steps. Runs with the default number of epochs make up
for that. All runs use one rank, because the result does not depend on the number of ranks.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.ranks import train_here
from benchmarks.record import Log
from benchmarks.rows import learnable_dataset
from trainer.classification.data import load_data
from trainer.command_line import parse_arguments

BATCHES = (128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536)
_ADAM = ["--epochs", "6"]
_SGD = [*_ADAM, "--optimiser", "sgd", "--learning-rate", "0.2"]
RECIPES: dict[str, list[str]] = {
    "adam": [*_ADAM, "--rate-scaling", "none"],
    "adam, root": _ADAM,
    "adam, linear": [*_ADAM, "--rate-scaling", "linear"],
    "adam, root, no warm-up": [*_ADAM, "--warm-up", "0"],
    "adam, root, no clipping": [*_ADAM, "--clip-norm", "0"],
    "adam, root, more epochs": [],
    "sgd": [*_SGD, "--rate-scaling", "none"],
    "sgd, linear": [*_SGD, "--rate-scaling", "linear"],
    "sgd, linear, no warm-up": [*_SGD, "--rate-scaling", "linear", "--warm-up", "0"],
}


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark with these command-line arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks large_batch", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "dataset", nargs="?", type=Path, help="dataset of shoal preprocess (default: generated reviews)"
    )
    parser.add_argument("--seeds", type=int, default=3, help="runs of each case (default: %(default)s)")
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES, help="global batches")
    options = parser.parse_args(arguments)
    log = Log("large_batch")
    with TemporaryDirectory() as folder:
        dataset = options.dataset or learnable_dataset(Path(folder))
        data = load_data(dataset)
        log.say(f"{dataset.name}: {len(data.training)} rows, {len(data.test)} to test")
        found: list[dict[str, Any]] = []
        for batch in options.batches:
            for recipe, settings in RECIPES.items():
                for seed in range(options.seeds):
                    figures = _trained(dataset, Path(folder) / "model", batch, seed, settings)
                    found.append({"batch": batch, "recipe": recipe, "seed": seed, **figures})
                    log.say(f"{batch}, {recipe}, {seed}: {figures}")
    for measure in ("accuracy", "balanced_accuracy"):
        rows = [
            [f"{batch:,}", *(_mean(found, batch, recipe, measure) for recipe in RECIPES)] for batch in options.batches
        ]
        log.table([f"global batch: {measure}", *RECIPES], rows)
    log.keep({"runs": found})


def _trained(dataset: Path, output: Path, batch: int, seed: int, settings: Sequence[str]) -> dict[str, Any]:
    config = parse_arguments(
        [
            *(f"--data={dataset}", f"--output={output}", f"--seed={seed}", f"--global-batch={batch}"),
            *("--force", *settings),
        ]
    )
    summary = train_here(config, ranks=1)
    return {name: summary[name] for name in ("accuracy", "balanced_accuracy", "steps")}


def _mean(found: Sequence[dict[str, Any]], batch: int, recipe: str, measure: str) -> str:
    return f"{mean(run[measure] for run in found if (run['batch'], run['recipe']) == (batch, recipe)):.3f}"
