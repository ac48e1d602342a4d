"""The benchmarks of training: ideal times, rows, and models of peers."""

from importlib import import_module

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.balance import ideal_seconds
from benchmarks.peers.bidirectional import _turned
from benchmarks.ranks import run_on_ranks
from benchmarks.rows import VOCABULARY, write_rows
from trainer.classification.data import load_data


def test_the_ideal_of_ranks_is_the_sum_of_their_rates() -> None:
    assert ideal_seconds(100, [30.0, 20.0], halves=False) == pytest.approx(2.0)


def test_where_the_last_rank_loses_half_of_its_speed_the_ideal_is_a_sum_of_two() -> None:
    assert ideal_seconds(100, [30.0, 20.0], halves=True) == pytest.approx(50 / 50 + 50 / 40)


@pytest.mark.soak
def test_plain_torch_is_started_by_ranks_and_says_its_rate(tmp_path) -> None:
    write_rows(tmp_path / "rows.h5", 3000)
    asked = {"embedding": 4, "hidden": 4, "layers": 1, "pooling": "last", "precision": "float32", "epochs": 1}
    asked |= {"data": str(tmp_path / "rows.h5"), "global_batch": 256, "packed": False, "threads": 1}
    assert run_on_ranks(2, "benchmarks.peers.plain_torch", asked)["rate"] > 0


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_texts_are_turned_without_their_padding(lengths: list[int]) -> None:
    texts = [torch.arange(1, length + 1) for length in lengths]
    padded = torch.nn.utils.rnn.pad_sequence(texts)  # (width, rows)
    turned = _turned(padded[:, :, None], torch.tensor(lengths))[:, :, 0]
    expected = torch.nn.utils.rnn.pad_sequence([text.flip(0) for text in texts])
    assert torch.equal(turned, expected)


@pytest.mark.parametrize("module", ["attention", "pairs", "bidirectional"])
def test_a_peer_judges_a_text_alike_alone_and_in_a_batch(module: str) -> None:
    settings = {"words": 50, "embedding": 8, "hidden": 8, "layers": 1, "pooling": "mean+max+words", "outputs": 2}
    torch.manual_seed(0)
    model = import_module(f"benchmarks.peers.{module}").build({**settings, "dropout": 0.5, "embedding_dropout": 0.5})
    lengths = torch.tensor([9, 7, 7, 2, 1])
    tokens = torch.randint(1, 50, (5, 12)) * (torch.arange(12) < lengths[:, None])
    together = model(tokens.int(), lengths)
    for text, length in enumerate(lengths.tolist()):
        alone = model(tokens[text : text + 1, :length].int(), lengths[text : text + 1])
        assert torch.allclose(together[text], alone[0], atol=1e-6)


@pytest.mark.parametrize("count", [18, 19, 20, 21, 1000])
def test_so_many_rows_are_to_train_on(tmp_path, count: int) -> None:
    write_rows(tmp_path / "rows.h5", count)
    data = load_data(tmp_path / "rows.h5")
    assert (len(data.training), len(data.vocabulary)) == (count, VOCABULARY)
