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
        ("simulate", ["--nodes", "g5.xlarge:1", "--rates", "results"], "--rates: not allowed with argument --nodes"),
        ("simulate", ["--rank-batch", "9", "--global-batch", "9"], "not allowed with argument --rank-batch"),
        ("simulate", ["--nodes", "g5.xlarge:5", "--scale", "256"], "1,280 GPUs, but at most 1,024"),
        ("simulate", ["--steps", "100000", "--epochs", "11"], "is 1,100,000, but at most 1,000,000"),
        ("simulate", ["--epochs", "0"], "'0' is not a whole number from 1 on"),
        ("simulate", ["--failures", "nan"], "'nan' is not a number from 0 on"),
        ("simulate", ["--gradients", "much"], "not a size"),
        ("simulate", ["--nodes", "g5.xlarge:4", "--balance", "3,1,1"], "3 shares for 4 GPUs"),
        ("simulate", ["--nodes", "g5.xlarge:none"], "'g5.xlarge:none' is not INSTANCE_TYPE:NODES"),
        ("simulate", ["--nodes", "m5.xlarge:1"], "m5.xlarge, which has no GPU"),
        ("simulate", ["--balance", "magic"], "or lb-bsp or cannikin"),
    ],
)
def test_wrong_use_ends_with_a_sentence(
    name: str, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        import_module(f"benchmarks.{name}").main(arguments)
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
