"""Models depend only on real words, however a batch is padded or grouped."""

import numpy as np
import pytest
import torch

from trainer.classification import models
from trainer.classification.models.lstm import LSTMClassifier, maximum, spread_padding
from trainer.classification.models.lstm_options import LSTMOptions
from trainer.computing import dropout
from trainer.config import configured


def build(pooling: str = "mean+max+words", **changes: object) -> LSTMClassifier:
    torch.manual_seed(0)
    settings = {"words": 50, "embedding": 12, "hidden": 8, "layers": 2, "pooling": pooling, "outputs": 1}
    shares = {"dropout": 0.5, "embedding_dropout": 0.5}
    return models.build("lstm", {**settings, **shares, **changes}).eval()


def some_texts(count: int, width: int = 30) -> tuple[torch.Tensor, torch.Tensor]:
    generator = np.random.default_rng(0)
    lengths = np.sort(generator.integers(1, width + 1, count))[::-1].copy()
    tokens = np.where(np.arange(width) < lengths[:, None], generator.integers(1, 50, (count, width)), 0)
    return torch.from_numpy(tokens.astype(np.int32)), torch.from_numpy(lengths)


@pytest.mark.parametrize("pooling", ["mean+max+words", "last"])
def test_a_text_has_the_same_output_alone_and_in_a_batch(pooling):
    model, (tokens, lengths) = build(pooling), some_texts(250)
    together = model(tokens, lengths)
    for text in (0, 100, 249):
        alone = model(tokens[text : text + 1, : lengths[text]], lengths[text : text + 1])
        assert torch.allclose(together[text], alone[0], atol=1e-5)


def test_ids_beyond_the_vocabulary_count_as_the_unknown_word():
    model, (tokens, lengths) = build(vocabulary=20), some_texts(20)
    assert len(model.word_vectors) == 22
    known = torch.where(tokens < 22, tokens, 1)
    assert not known.equal(tokens)
    assert model(tokens, lengths).equal(model(known, lengths))
    settings = LSTMOptions(vocabulary=20).model_settings(words=50, outputs=1)
    weights = models.build("lstm", settings).state_dict().values()
    assert models.kind("lstm").count_weights(settings) == sum(each.numel() for each in weights)
    enough = LSTMOptions(vocabulary=48).model_settings(words=50, outputs=1)
    assert "vocabulary" not in enough


def test_last_pooling_takes_the_state_after_the_last_real_word():
    model, (tokens, lengths) = build("last"), some_texts(20)
    states = torch.nn.utils.rnn.pack_padded_sequence(model.embedding(tokens.t()), lengths)
    for layer in model.lstm:
        states, (hidden, _) = layer(states)
    inner, last = model.head
    assert torch.allclose(model(tokens, lengths), last(inner(hidden[-1]).relu()), atol=1e-5)


def test_the_padding_vector_is_zero_and_has_no_gradient():
    model, (tokens, lengths) = build().train(), some_texts(20)
    model(tokens, lengths).sum().backward()
    assert model.embedding.weight[0].abs().max() == 0
    assert model.embedding.weight.grad[0].abs().max() == 0


@pytest.mark.parametrize("pooling", ["mean+max+words", "last"])
@pytest.mark.parametrize("width", [30, 37])
def test_ids_in_the_padding_leave_outputs_and_gradients_bit_identical(pooling, width):
    (tokens, lengths), found = some_texts(300), []
    tokens = torch.nn.functional.pad(tokens, (0, width - 30))
    spread = spread_padding(tokens, lengths, 50)
    real = torch.arange(width) < lengths[:, None]
    assert spread[real].equal(tokens[real])
    assert spread[~real].bincount(minlength=50).max() < 2 * (~real).sum() / 50
    for ids in (tokens, spread):
        model = build(pooling)  # in evaluation mode, which does not spread the padding
        outputs = model(ids, lengths)
        outputs.square().sum().backward()
        found.append([outputs, *(each.grad for each in model.parameters())])
    assert all(one.equal(other) for one, other in zip(*found, strict=True))
    trained = build(pooling, dropout=0.0, embedding_dropout=0.0).train()
    assert trained(tokens, lengths).equal(found[0][0])


def keys_of(step: int, count: int) -> torch.Tensor:
    return torch.from_numpy(dropout.keys(7, step, np.arange(count)))


def test_dropout_of_a_row_depends_only_on_its_key():
    model, (tokens, lengths) = build(), some_texts(150)
    keys = keys_of(3, 150)
    together = model(tokens, lengths, keys)
    assert not torch.equal(together, model(tokens, lengths))
    assert not torch.equal(together, model(tokens, lengths, keys_of(4, 150)))
    for some in (slice(0, 1), slice(20, 149), slice(7, 40)):
        assert torch.allclose(together[some], model(tokens[some], lengths[some], keys[some]), atol=1e-5)


def test_max_pooling_takes_the_maximum_over_real_words():
    states = torch.tensor([[[-3.0, 1.0]], [[-2.0, -5.0]], [[9.0, 9.0]]])  # (width 3, one row, 2)
    assert maximum(states, torch.tensor([2])).tolist() == [[-2.0, 1.0]]


def test_word_vectors_reach_the_last_layers_without_the_lstm():
    (tokens, lengths), found = some_texts(100), {}
    for pooling in ("last", "mean+max+words"):
        model = build(pooling)
        for parameter in model.lstm.parameters():
            torch.nn.init.zeros_(parameter)
        found[pooling] = float(model(tokens, lengths).detach().std())
    assert found["last"] < 1e-6 < 1e-4 < found["mean+max+words"]


def test_the_reference_preset_has_the_parameter_count_of_the_reference(tmp_path):
    reference = {"embedding": 100, "hidden": 32, "layers": 2, "pooling": "last"}
    config = configured({"model": "lstm", "data": tmp_path, "output": tmp_path, **reference})
    model = models.build("lstm", config.options.model_settings(words=10_003, outputs=1))
    assert sum(parameter.numel() for parameter in model.parameters()) == 1_026_989
