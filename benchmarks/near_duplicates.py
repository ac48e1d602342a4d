"""What it takes to count near-duplicates, by the number of texts: seconds of its three jobs, and of all others.

    python -m benchmarks near_duplicates [--texts 10000 100000 1000000]

Every step runs on the embedded Hadoop Streaming (`benchmarks.streaming`), on generated reviews, a tenth of
which have a copy with another word. A job there takes some CPU-seconds at any size, to start its tasks.
"""

import argparse
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from benchmarks.generated import write_reviews
from benchmarks.record import Log
from benchmarks.streaming import Cost, StreamingNode, made, planned
from corpus.dataset_settings import DEFAULT
from corpus.reading.sources import Inputs

_REVIEW_BYTES = 1_176
_COPIED = 10
"""Of so many reviews one."""
_STEPS = ("sketch texts", "fetch texts", "compare texts")


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks near_duplicates", description=__doc__.partition("\n")[0]
    )
    sizes = [10_000, 100_000, 1_000_000]
    parser.add_argument("--texts", type=int, nargs="+", default=sizes, help="about so many, with duplicates")
    options = parser.parse_args(arguments)
    log = Log("near_duplicates")
    _measured(1_000)  # compiles what is compiled once
    runs = {texts: _measured(texts) for texts in options.texts}
    names = (*_STEPS, "all others")
    rows = []
    for costs, counts in runs.values():
        by_name = {**costs, "all others": Cost(**_sum([cost for step, cost in costs.items() if step not in _STEPS]))}
        found = [f"{by_name[name].cpu:.1f} ({by_name[name].wall:.1f})" for name in names]
        near = counts["near_duplicates"]
        rows.append([f"{counts['distinct']:,}", *found, *(f"{near[name]:,}" for name in ("compared", "pairs", "test"))])
    log.table(["distinct texts", *(f"{name}: CPU s (wall)" for name in names), "compared", "near", "of the test"], rows)
    log.keep(
        {
            f"{texts:,}": {"costs": {step: asdict(cost) for step, cost in costs.items()}, "counts": counts}
            for texts, (costs, counts) in runs.items()
        }
    )


def _measured(texts: int) -> tuple[Mapping[str, Cost], dict[str, Any]]:
    """The cost of each step, and the counts."""
    with TemporaryDirectory() as name:
        source = Path(name) / "reviews.json"
        write_reviews(source, texts * _REVIEW_BYTES)
        _add_copies(source)
        plan = planned(Inputs(files=(str(source),)), name, settings=replace(DEFAULT, near_duplicates=True))
        return StreamingNode(Path(name) / "node").run(plan), made(plan).counts


def _add_copies(source: Path) -> None:
    """Append copies of some reviews, with another word in the middle."""
    copies = source.with_suffix(".copies")
    with source.open("rb") as lines, copies.open("wb") as out:
        for number, line in enumerate(islice(lines, 0, None, _COPIED)):
            try:
                review = orjson.loads(line)
                words = review["reviewText"].split(" ")
            except (AttributeError, KeyError, TypeError, ValueError):  # a malformed line
                continue
            words[len(words) // 2] = f"copy{number}"
            out.write(orjson.dumps({**review, "reviewText": " ".join(words)}) + b"\n")
    with source.open("ab") as out, copies.open("rb") as lines:
        shutil.copyfileobj(lines, out)
    copies.unlink()


def _sum(costs: Sequence[Cost]) -> dict[str, float]:
    return {"cpu": sum(cost.cpu for cost in costs), "wall": sum(cost.wall for cost in costs)}
