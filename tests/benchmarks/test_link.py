"""The benchmark of the exchanges: what each sends, and the table. Its link needs root, so it is left out here."""

from pathlib import Path

import pytest

from benchmarks import link
from benchmarks.ranks import run_on_ranks
from benchmarks.rows import write_rows


def test_the_table_compares_each_exchange_with_the_first_one_run_by_run() -> None:
    def figures(step: float) -> dict[str, float]:
        return {"bytes": 4.1e6, "alone": 0.033, "reducing": 0.016, "step": step}

    steps = {"rows": (0.1, 0.2, 0.4), "ddp": (0.2, 0.2, 0.2)}
    rows = list(link._rows("some", {way: [figures(step) for step in each] for way, each in steps.items()}))
    assert rows[0] == ["some", "rows", "4.10", "33.0", "16.0", "200.0", "1.00 (1.00 to 1.00)"]
    assert rows[1][-1] == "1.00 (0.50 to 2.00)"
    assert len(rows[0]) == 1 + len(link._HEADS)


@pytest.mark.slow
def test_the_own_exchange_sends_less_where_a_batch_has_few_of_the_words(tmp_path: Path) -> None:
    sent = {}
    for words in (50, 5000):
        data = tmp_path / f"{words}.h5"
        write_rows(data, 320, vocabulary=words)
        for way, (exchange, bits) in link.WAYS.items():
            asked = {"data": str(data), "global_batch": 32, "options": {"hidden": 8}, "seed": 0}
            told = run_on_ranks(2, "benchmarks.all_reduce_rank", {**asked, "exchange": exchange, "bits": bits})
            assert told["alone"] > 0
            sent[words, way] = told["bytes"]
    for words in (50, 5000):
        for exchange in ("rows", "ddp"):
            assert sent[words, f"{exchange}, 16 bits"] == sent[words, exchange] / 2
    assert sent[50, "rows"] == sent[50, "ddp"]
    assert sent[5000, "rows"] < 0.5 * sent[5000, "ddp"]
