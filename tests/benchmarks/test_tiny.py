"""Each benchmark that trains succeeds in a tiny size, with all cases in its record."""

import json
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks import record
from tests.trainer.embeddings.made_text import lines, pairs

BENCHMARKS = [
    (
        "downstream --seeds 1 --models lstm --size 8 --labelled .5 --word-rates .02 .2 --text {text}",
        ["random", "random, as long", "learned before"],
    ),
    (
        "embeddings gensim {text} --similarity {pairs} --seeds 1 --epochs 5 --cases 'gensim, 1 worker' 'Shoal, 1 rank'",
        ["gensim, 1 worker", "Shoal, 1 rank"],
    ),
    (
        "embeddings modes {text} --seeds 1 --epochs 2 --size 8 --local-steps 5 --ways 'one rank' 'async, one slow'",
        ["one rank", "async, one slow", "equal time"],
    ),
    (
        "fasttext quality 'tiny=--input {reviews}' --seeds 1 --shoal 'ours=--preset=fasttext --epochs 2' --cases "
        "'fastText, best rate' 'fastText, autotune' 'TF-IDF, logistic regression'",
        ["ours", "fastText, best rate", "fastText, autotune", "TF-IDF, logistic regression"],
    ),
    (
        "fasttext yelp --texts 400 --test 100 --runs 1 --cases 'SGD, --preset fasttext, 2 ranks'",
        ["SGD, --preset fasttext, 2 ranks"],
    ),
]


def keys(value: Any) -> Iterator[str]:
    for name, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield str(name)
        yield from keys(inner)


@pytest.mark.soak
@pytest.mark.parametrize(("command", "cases"), BENCHMARKS, ids=[" ".join(each.split()[:2]) for each, _ in BENCHMARKS])
def test_a_benchmark_records_each_of_its_cases(
    command: str, cases: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("gensim", "fasttext", "sklearn"):
        pytest.importorskip(package, reason="requirements-bench.txt is not installed")
    monkeypatch.setattr(record.Log, "folder", tmp_path / "records")
    monkeypatch.setattr("benchmarks.downstream._GENERATED", 300)
    text, reviews = tmp_path / "topics.txt", tmp_path / "reviews.json"
    text.write_text("\n".join(lines(3000)) + "\n")
    rated = [{"reviewText": f"word{n} , {('bad', 'good')[n % 2]}", "overall": 1 + 4 * (n % 2)} for n in range(60)]
    reviews.write_text("".join(f"{json.dumps(each)}\n" for each in rated))
    given = command.format(text=text, reviews=reviews, pairs=pairs(tmp_path / "pairs.txt"))
    program, *options = shlex.split(given)
    import_module(f"benchmarks.{program}").main(options)
    (kept,) = (tmp_path / "records").glob("*.json")
    assert set(cases) <= set(keys(json.loads(kept.read_text())))
