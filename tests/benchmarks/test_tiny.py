"""Each benchmark that trains succeeds in a tiny size, with all cases in its record."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks import record
from benchmarks.__main__ import main
from tests.trainer.embeddings.made_text import lines, pairs

BENCHMARKS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("tiny.yaml").read_text())


def keys(value: Any) -> Iterator[str]:
    for name, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield str(name)
        yield from keys(inner)


@pytest.mark.soak
@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda each: " ".join(each["command"].split()[:2]))
def test_a_benchmark_records_each_of_its_cases(benchmark, tmp_path, monkeypatch) -> None:
    for package in ("gensim", "fasttext", "sklearn"):
        pytest.importorskip(package, reason="requirements-bench.txt is not installed")
    monkeypatch.setattr(record.Log, "folder", tmp_path / "records")
    text, reviews = tmp_path / "topics.txt", tmp_path / "reviews.json"
    text.write_text("\n".join(lines(3000)) + "\n")
    rated = [{"reviewText": f"word{n} , {('bad', 'good')[n % 2]}", "overall": 1 + 4 * (n % 2)} for n in range(60)]
    reviews.write_text("".join(f"{json.dumps(each)}\n" for each in rated))
    given = benchmark["command"].format(text=text, reviews=reviews, pairs=pairs(tmp_path / "pairs.txt"))
    main(shlex.split(given))
    (kept,) = (tmp_path / "records").glob("*.json")
    assert set(benchmark["cases"]) <= set(keys(json.loads(kept.read_text())))
