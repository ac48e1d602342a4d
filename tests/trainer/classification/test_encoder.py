"""A Transformer encoder as a classifier: it reads texts as Hugging Face's library does, and each row by itself."""

from pathlib import Path
from typing import Any

import pytest
import torch

from common.errors import TrainingError
from corpus.text import UNKNOWN
from tests.trainer.classification import made_encoder
from trainer.classification.encoder_files import EncoderFiles
from trainer.classification.labelling import Labeller
from trainer.classification.loading import load_model
from trainer.classification.model_folder import write_model
from trainer.classification.models import build, weights
from trainer.classification.models.encoder import Encoder
from trainer.computing import dropout

WORDS = ("good", "bad", "film", "films", "badly")
PIECES = ("good", "bad", "film", "##s", "##l", "##y")
TEXT = "good bad film films badly good"
TOKENS = torch.tensor([[2, 3, 4, 5, 6, 2], [5, 3, UNKNOWN, 0, 0, 0], [2, 6, 0, 0, 0, 0]], dtype=torch.int32)
LENGTHS = torch.tensor([6, 3, 2])


@pytest.fixture(scope="module", params=["bert", "albert", "deberta-v2", "distilbert", "roberta", "roformer"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("encoder") / request.param
    return made_encoder.roberta(path) if path.name == "roberta" else made_encoder.bert(path, PIECES, kind=path.name)


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    model = made_encoder.build(folder, WORDS)
    for name, each in model.named_parameters():  # in a tiny random encoder texts make next to no difference
        if "LayerNorm" not in name:
            each.data *= 5
    return model


@pytest.fixture
def files(encoder: Encoder) -> EncoderFiles:
    return encoder.files


def test_a_row_has_the_pieces_of_its_words_and_answers_as_in_the_library(folder: Path, encoder: Encoder) -> None:
    from transformers import AutoTokenizer

    library = AutoTokenizer.from_pretrained(folder, add_prefix_space=True)(TEXT, return_tensors="pt")
    torch.testing.assert_close(encoder(TOKENS, LENGTHS)[:1], encoder.library(**library).logits)


def test_padding_and_neighbours_do_not_change_an_answer(encoder: Encoder) -> None:
    together = encoder(TOKENS, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        alone = encoder(TOKENS[row : row + 1, :length], LENGTHS[row : row + 1])
        torch.testing.assert_close(alone, together[row : row + 1], atol=1e-5, rtol=1e-4)
    assert not torch.allclose(together[0], together[2], atol=1e-3)


def test_masks_of_dropout_are_those_of_the_row(encoder: Encoder) -> None:
    assert dropout.drops(encoder)
    keys = torch.tensor([5, 6, 7])
    encoder.train()
    together = encoder(TOKENS, LENGTHS, keys)
    torch.testing.assert_close(encoder(TOKENS[1:, :3], LENGTHS[1:], keys[1:]), together[1:], atol=1e-5, rtol=1e-4)
    assert not torch.allclose(encoder(TOKENS, LENGTHS, keys + 1), together, atol=1e-3)
    assert torch.equal(encoder(TOKENS, LENGTHS), encoder.eval()(TOKENS, LENGTHS))


def test_a_long_row_is_cut_to_what_the_encoder_reads(encoder: Encoder) -> None:
    longer = torch.full((1, 60), 2, dtype=torch.int32)
    cut = encoder(longer[:, :50], torch.tensor([50]))
    assert torch.equal(encoder(longer, torch.tensor([60])), cut)


def test_the_number_of_its_weights_is_known_before_it_is_built(encoder: Encoder, files: EncoderFiles) -> None:
    settings: dict[str, Any] = {"words": 2 + len(WORDS), "outputs": 2, "files": files}
    assert weights("encoder", settings) == sum(each.numel() for each in encoder.state_dict().values())
    files.config.num_hidden_layers, before = 1_000_000, files.config.num_hidden_layers
    with pytest.raises(TrainingError, match="1000000 layers"):
        weights("encoder", settings)
    files.config.num_hidden_layers = before


def test_every_weight_has_a_gradient_and_bfloat16_is_close(encoder: Encoder) -> None:
    outputs = encoder(TOKENS, LENGTHS, torch.tensor([5, 6, 7]))
    assert all(each is not None for each in torch.autograd.grad(outputs.sum(), list(encoder.parameters())))
    encoder.precision = torch.bfloat16
    rounded = encoder(TOKENS, LENGTHS)
    encoder.precision = torch.float32
    torch.testing.assert_close(rounded, encoder(TOKENS, LENGTHS), atol=0.2, rtol=0.1)


def test_a_last_layer_that_was_learnt_for_as_many_outputs_is_kept(encoder: Encoder, files: EncoderFiles) -> None:
    state = encoder.state_dict()
    name = max(each for each in state if each.startswith("classifier") and each.endswith("weight"))
    same, other = (build("encoder", {"words": 7, "outputs": outputs, "files": files}) for outputs in (2, 5))
    for model in (same, other):
        assert isinstance(model, Encoder)
        model.start(state)
    assert torch.equal(same.state_dict()[name], state[name])
    assert len(other.state_dict()[name]) == 5


def test_a_folder_is_read_as_it_was_written_by_shoal_and_by_the_library(encoder: Encoder, tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    written = made_encoder.trained(encoder, WORDS)
    write_model(tmp_path / "model", written)
    texts = [TEXT, "bad nothing", "films"]
    found = load_model(tmp_path)
    answers = [each.probabilities for each in Labeller(written)(texts)]
    assert [each.probabilities for each in Labeller(found)(texts)] == answers
    write_model(tmp_path / "again", found)
    assert load_model(tmp_path / "again").settings == written.settings

    library = AutoModelForSequenceClassification.from_pretrained(tmp_path / "again")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "again")
    torch.testing.assert_close(library(**tokenizer(TEXT, return_tensors="pt")).logits, encoder(TOKENS, LENGTHS)[:1])
    assert library.config.id2label == {0: "negative", 1: "positive"}
