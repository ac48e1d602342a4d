"""Classifiers that start from a language model: what they begin with, what learns when, and what is saved."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from common.errors import TrainingError
from corpus.text import UNKNOWN, word_ids
from tests.trainer.conftest import Launch
from tests.trainer.pretraining import made_language
from trainer.classification.labelling import Labeller
from trainer.classification.loading import load_model
from trainer.classification.models import build, weights
from trainer.classification.models.pretrained import Pretrained
from trainer.classification.start_weights import composed_of
from trainer.config import configured
from trainer.language.loading import load_language_model

LANGUAGE = (
    "--model", "awd-lstm", "--embedding", "12", "--hidden", "16", "--layers", "2", "--global-batch", "8", "--bptt", "9",
    "--epochs", "2", "--learning-rate", "2e-2", "--threads", "1", "--direction", "both",
)  # fmt: skip
TUNING = ("--epochs", "8", "--threads", "1", "--record-every", "1", "--global-batch", "32")
SETTINGS: dict[str, Any] = {
    "words": 9, "embedding": 4, "hidden": 5, "layers": 2, "direction": "both", "output_weights": "tied",
    "dropout": 0.2, "embedding_dropout": 0.1, "outputs": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def language(launch: Launch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("language")
    run(launch, 0, made_language.dataset(folder / "dataset.h5"), folder / "run", *LANGUAGE)
    return folder / "run"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same texts, with two words that the language model does not know."""
    vocabulary = [*made_language.WORDS[:20], "w1-w2", "new", *made_language.WORDS[22:]]
    return made_language.dataset(tmp_path_factory.mktemp("data") / "dataset.h5", vocabulary=vocabulary)


@pytest.fixture(scope="module")
def tuned(launch: Launch, data: Path, language: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("tuned")
    run(launch, 0, data, output, "--from", language, *TUNING)
    return output


def run(launch: Launch, ranks: int, data: Path, output: Path, *options: Any) -> str:
    process = launch(ranks, "-m", "trainer", "--data", data, "--output", output, *options)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    return errors


def summary(output: Path) -> dict[str, Any]:
    return json.loads((output / "summary.json").read_text())


def losses(output: Path) -> dict[int, float]:
    found = [json.loads(line) for line in (output / "record.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in found if line["kind"] == "step"}


def test_a_classifier_is_made_of_it_and_answers_as_it_was_tested(tuned: Path, language: Path) -> None:
    assert summary(tuned)["accuracy"] > summary(tuned)["majority"] + 0.1
    model = load_model(tuned)
    assert list(model.ids) == [*made_language.WORDS, "w1-w2", "new"]
    assert model.about["pretrained"]["address"] == str(language)
    assert model.about["pretrained"]["tokens"] == load_language_model(str(language)).about["tokens"]
    card = (tuned / "model" / "README.md").read_text()
    assert str(language) in card
    assert model.about["pretrained"]["test_rows_apart"] is None  # of another dataset
    assert "whether it has learnt from the test rows below is not known" in card
    texts = [" ".join(f"w{number}" for number in text) for text in made_language.texts(60, seed=1)]
    last = [int(text.split()[-1][1:]) for text in texts]
    known = [number not in (20, 21) for number in last]
    right = [int(number < 12) for number in last]
    labels = [each.label for each in Labeller(model)(texts)]
    hits = [label == answer for label, answer, sure in zip(labels, right, known, strict=True) if sure]
    assert sum(hits) / len(hits) == pytest.approx(summary(tuned)["accuracy"], abs=0.15)


@pytest.mark.soak
def test_two_ranks_tune_what_one_tunes(launch: Launch, data: Path, language: Path, tuned: Path, tmp_path: Path) -> None:
    run(launch, 2, data, tmp_path, "--from", language, *TUNING, "--balance", "3,1")
    assert losses(tmp_path) == pytest.approx(losses(tuned), rel=5e-3)


@pytest.mark.soak
def test_a_run_that_is_stopped_goes_on_with_the_same_words(
    launch: Launch, data: Path, language: Path, tuned: Path, tmp_path: Path
) -> None:
    arguments = ["-m", "trainer", "--data", data, "--output", tmp_path, "--from", language, *TUNING]
    first = launch(0, *arguments, "--slow", "0:8")
    record = tmp_path / "record.jsonl"
    while first.poll() is None and not (record.exists() and record.read_text().count('"kind": "step"') >= 5):
        time.sleep(0.05)
    first.send_signal(signal.SIGTERM)
    _, errors = first.communicate(timeout=60)
    assert summary(tmp_path)["stopped"], errors
    run(launch, 0, data, tmp_path, "--from", language, *TUNING, "--resume")
    assert list(load_model(tmp_path).ids) == list(load_model(tuned).ids)
    assert losses(tmp_path) == pytest.approx(losses(tuned), rel=1e-4)


def test_it_is_told_whether_the_test_rows_were_learnt_from(launch: Launch, language: Path, tmp_path: Path) -> None:
    own = language.parent / "dataset.h5"
    said = run(launch, 0, own, tmp_path, "--from", language, *TUNING, "--freeze", "--epochs", "1")
    assert "It has not learnt from the test rows" in said
    assert load_model(tmp_path).about["pretrained"]["test_rows_apart"] is True


def test_frozen_layers_stay_as_they_were(launch: Launch, data: Path, language: Path, tmp_path: Path) -> None:
    said = run(launch, 0, data, tmp_path, "--from", language, *TUNING, "--freeze", "--epochs", "1")
    assert "whether the test rows are among them is not known" in said
    before = load_language_model(str(language)).model.state_dict()
    after = load_file(tmp_path / "model" / "model.safetensors")
    for name, each in before.items():
        if ".layers." in name:
            assert torch.equal(after[f"language.{name}"], each), name
    assert torch.equal(after["language.embedding.weight"][:26], before["embedding.weight"])
    parts = before["embedding.weight"][[2 + 1, 2 + 2]].mean(0)
    torch.testing.assert_close(after["language.embedding.weight"][26], parts)
    torch.testing.assert_close(after["language.embedding.weight"][27], before["embedding.weight"][UNKNOWN])


def test_a_classifier_on_it_goes_on_with_all_layers_from_the_first_step(
    launch: Launch, data: Path, language: Path, tuned: Path, tmp_path: Path
) -> None:
    run(launch, 0, data, tmp_path, "--from", tuned, *TUNING, "--epochs", "1")
    model = load_model(tmp_path)
    assert list(model.ids) == list(load_model(tuned).ids)
    assert model.about["pretrained"]["address"] == str(language)
    assert [step["address"] for step in model.about["continued"]] == [str(tuned)]
    before, after = (load_file(output / "model" / "model.safetensors") for output in (tuned, tmp_path))
    assert not any(torch.equal(after[name], each) for name, each in before.items())


def test_a_dataset_of_another_rule_of_words_is_refused(launch: Launch, language: Path, tmp_path: Path) -> None:
    other = made_language.dataset(tmp_path / "other.h5", words="letters", vocabulary=[chr(97 + n) for n in range(24)])
    process = launch(0, "-m", "trainer", "--data", other, "--output", tmp_path / "out", "--from", language)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "reads texts by the rule of words 'tokens', and the dataset was made by 'letters'" in errors


@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
def test_padding_and_neighbours_do_not_change_an_answer(direction: str) -> None:
    torch.manual_seed(0)
    settings = {**SETTINGS, "direction": direction}
    model = build("pretrained", settings).eval()
    assert weights("pretrained", settings) == sum(each.numel() for each in model.parameters())
    tokens = torch.tensor([[3, 4, 5, 6, 7], [8, 2, 3, 0, 0]], dtype=torch.int32)
    together = model(tokens, torch.tensor([5, 3]))
    alone = model(tokens[1:, :3], torch.tensor([3]))
    torch.testing.assert_close(together[1:], alone)
    turned = model(tokens[1:, :3].flip(1).contiguous(), torch.tensor([3]))
    assert not torch.allclose(turned, alone)


def test_lower_layers_learn_more_slowly_and_every_parameter_is_in_a_group() -> None:
    model = build("pretrained", SETTINGS)
    assert isinstance(model, Pretrained)
    groups = model.rate_groups()
    shares = [share for _, share in groups]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1.0
    found = [id(each) for group, _ in groups for each in group]
    assert sorted(found) == sorted(id(each) for each in model.parameters())


def test_a_head_whose_units_are_all_below_0_still_learns() -> None:
    model = build("pretrained", SETTINGS)
    assert isinstance(model, Pretrained)
    with torch.no_grad():
        model.head[0].bias.fill_(-99.0)
    tokens = torch.tensor([[3, 4, 5], [8, 2, 3]], dtype=torch.int32)
    model(tokens, torch.tensor([3, 3])).sum().backward()
    assert all(each.grad is not None and each.grad.any() for each in model.head.parameters())


def test_options_that_do_not_go_together() -> None:
    given = {"data": "x", "output": "y"}
    assert configured({**given, "start_from": "z"}).model == "pretrained"
    for wrong, sentence in (
        ({"model": "pretrained"}, "name it by --from"),
        ({"start_from": "z", "model": "auto"}, "leave out --model"),
        ({"start_from": "z", "embeddings": "e"}, "give one of them"),
        ({"start_from": "z", "model": "lstm", "freeze": True}, "name it by --from"),
        ({"old_data": "d"}, "name it by --from"),
        ({"freeze": True}, "name it by --from"),
    ):
        with pytest.raises(TrainingError, match=sentence):
            configured({**given, **wrong})


KNOWN = word_ids(["un", "help", "helpful", "less", "well", "made", "ness"])


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("well-made", ["well", "made"]),
        ("helpfulness", ["helpful", "ness"]),
        ("helpless", ["help", "less"]),
        ("zzz", []),
        ("made!", ["made"]),
    ],
)
def test_new_words_start_from_their_parts(word: str, parts: list[str]) -> None:
    assert composed_of(word, KNOWN) == ([KNOWN[part] for part in parts] or [UNKNOWN])


@given(st.text(max_size=12))
def test_every_word_has_parts_that_are_known(word: str) -> None:
    assert set(composed_of(word, KNOWN)) <= {*KNOWN.values(), UNKNOWN}
