"""The balancer: two ranks, a core each, one of them slowed; the split that follows their speed against equal ones."""

from pathlib import Path
from tempfile import TemporaryDirectory

from bootstrap.generator import write_reviews
from bootstrap.progress import Bars
from bootstrap.train import train_here
from jobs.pipeline import preprocess
from jobs.sources import Inputs
from trainer.config import TrainConfig

WHAT = "two ranks on one machine, the second slowed by a factor, epochs 1 to 8 of 8,000 generated texts"
FIGURES = ("share of ideal", "rows / s", "accuracy")

_SLOWNESS = (1.0, 2.0, 4.0)


def measure(run: int) -> dict[str, dict[str, float]]:
    """One run of every case: the figures by name."""
    found = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_reviews(folder / "reviews.json", texts=8_000, seed=run)
        made = preprocess(Inputs(files=(str(folder / "reviews.json"),)), str(folder / "data"), runner="inline")
        for factor in _SLOWNESS:
            for balance in ("off", "steps"):
                config = TrainConfig(
                    data=Path(made.dataset),
                    output=folder / "model",
                    balance=balance,
                    slow={1: factor} if factor > 1 else {},
                    seed=run,
                )
                with Bars() as bars:
                    summary = train_here(config, ranks=2, bars=bars)
                figures = (summary["share_of_ideal"], summary["samples_per_second"], summary["accuracy"])
                found[f"x{factor:g} slower, {balance}"] = dict(zip(FIGURES, figures, strict=True))
    return found
