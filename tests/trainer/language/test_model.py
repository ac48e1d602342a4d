"""The layers of a language model: states that are carried on, what is dropped, and how many weights there are."""

from dataclasses import replace

import pytest
import torch

from trainer.language.model import EncoderSettings, LanguageModel, Regularisation

SETTINGS = EncoderSettings(words=20, embedding=5, hidden=7, layers=2, direction="forward", tied=True)


@pytest.mark.parametrize("direction", ["forward", "both"])
@pytest.mark.parametrize("tied", [True, False])
def test_weights_are_counted_and_states_have_their_width(direction: str, tied: bool) -> None:
    settings = replace(SETTINGS, direction=direction, tied=tied)
    model = LanguageModel(settings)
    assert settings.weights == sum(each.numel() for each in model.parameters())
    outputs, states = model([torch.zeros(3, 2, dtype=torch.long)] * len(settings.directions))
    assert [each.shape for each in outputs] == [(3, 2, settings.widths[-1])] * len(settings.directions)
    assert states.shape == (2, settings.state_width)
    model.drop_outputs()
    assert settings.reading_weights == sum(each.numel() for each in model.parameters())


def test_a_text_that_is_read_in_two_parts_gives_what_it_gives_at_once() -> None:
    model = LanguageModel(replace(SETTINGS, direction="both"))
    tokens = torch.randint(0, 20, (9, 4))
    whole, after = model([tokens, tokens.flip(0)])
    first, between = model([tokens[:4], tokens.flip(0)[:4]])
    second, last = model([tokens[4:], tokens.flip(0)[4:]], between)
    for own, *parts in zip(whole, first, second, strict=True):
        torch.testing.assert_close(torch.cat(parts), own)
    torch.testing.assert_close(last, after)


def test_what_is_dropped_depends_on_the_row_s_key_and_the_step_alone() -> None:
    model = LanguageModel(SETTINGS, Regularisation(inputs=0.3, between=0.3, words=0.3, weights=0.3))
    tokens, keys = torch.randint(0, 20, (6, 3)), torch.tensor([5, 900, 17])
    (together,), _ = model([tokens], None, keys, 11)
    (alone,), _ = model([tokens[:, 1:2]], None, keys[1:2], 11)
    torch.testing.assert_close(together[:, 1:2], alone)
    (another_key,), _ = model([tokens[:, 1:2]], None, keys[:1], 11)
    (another_step,), _ = model([tokens[:, 1:2]], None, keys[1:2], 12)
    (nothing,), _ = model([tokens[:, 1:2]])
    assert not torch.allclose(alone, another_key)
    assert not torch.allclose(alone, another_step)
    assert not torch.allclose(alone, nothing)
