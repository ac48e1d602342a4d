"""What the benchmarks refuse before they measure anything."""

from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("growth", ["--gb", "1"], "--gb needs at least two sizes"),
        ("prediction", ["--gb", "1", "1"], "--gb needs at least two sizes"),
        ("regression", ["--pairs", "1"], "--pairs must be at least 2"),
        ("predict", ["reviews.json"], "reviews.json is not NAME=FILE[,FILE...]"),
        ("quality", ["imdb="], "imdb= is not NAME=OPTIONS"),
        ("fasttext.quality", ["imdb"], "imdb is not NAME=OPTIONS"),
        ("fasttext.both", ["=--input"], "=--input is not NAME=OPTIONS"),
        ("fasttext.tables", ["--rows", "9999"], "--rows must be at least 10,000"),
    ],
)
def test_wrong_use_ends_with_a_sentence(
    name: str, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        import_module(f"benchmarks.{name}").main(arguments)
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
