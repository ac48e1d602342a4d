"""Classifiers that start from an encoder: what they learn, on how many ranks, and what is refused."""

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from bootstrap.cli.main import main
from common.errors import TrainingError
from tests.trainer.classification import made_encoder
from tests.trainer.conftest import Launch
from trainer.classification.encoder_files import read_encoder_files, read_encoder_weights
from trainer.classification.labelling import Labeller
from trainer.classification.loading import load_model
from trainer.config import configured
from trainer.start_model import Kind, find_start_model, start_options

TUNING = ("--epochs", "5", "--learning-rate", "2e-3", "--threads", "1", "--record-every", "1")
DIGITS = [str(digit) for digit in range(10)]
PIECES = ("w", *DIGITS, *(f"##{digit}" for digit in DIGITS))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_encoder.dataset(tmp_path_factory.mktemp("data") / "dataset.h5")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_encoder.bert(tmp_path_factory.mktemp("encoder"), PIECES)


@pytest.fixture(scope="module")
def tuned(launch: Launch, data: Path, encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("tuned")
    said = run(launch, 0, data, output, "--from", f"hf:{encoder}", *TUNING)
    assert "a word in the validation rows as 2.6" in said
    assert "and 0.0% of them not whole" in said
    return output


def run(launch: Launch, ranks: int, data: Path, output: Path, *options: str, **environment: str) -> str:
    process = launch(ranks, "-m", "trainer", "--data", data, "--output", output, *options, **environment)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    return errors


def refused(launch: Launch, data: Path, output: Path, start: str, **environment: str) -> str:
    process = launch(0, "-m", "trainer", "--data", data, "--output", output, "--from", start, **environment)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 1
    assert "Traceback" not in errors
    return errors


def summary(output: Path) -> dict[str, Any]:
    return json.loads((output / "summary.json").read_text())


def losses(output: Path) -> dict[int, float]:
    found = [json.loads(line) for line in (output / "record.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in found if line["kind"] == "step"}


def test_it_learns_and_its_model_says_where_it_comes_from(tuned: Path, encoder: Path) -> None:
    assert summary(tuned)["accuracy"] > summary(tuned)["majority"] + 0.2
    model = load_model(tuned)
    answers = Labeller(model)(["w1 w2 w3 w5", "w20 w15 w17 unheard"])
    assert [each.label for each in answers] == [1, 0]
    assert model.about["pretrained"] == {"address": f"hf:{encoder}", "encoder": "bert", "layers": 2, "hidden": 32}
    card = (tuned / "model" / "README.md").read_text()
    assert f"as an encoder of Hugging Face's library, hf:{encoder} (bert: layers 2, hidden 32)" in card
    assert "AutoModelForSequenceClassification" in card


@pytest.mark.soak
def test_two_ranks_tune_what_one_tunes(launch: Launch, data: Path, encoder: Path, tuned: Path, tmp_path: Path) -> None:
    run(launch, 2, data, tmp_path, "--from", f"hf:{encoder}", *TUNING, "--balance", "3,1")
    assert losses(tmp_path) == pytest.approx(losses(tuned), rel=1e-4)


@pytest.mark.soak
def test_a_tuned_model_is_an_encoder_to_start_from(launch: Launch, data: Path, tuned: Path, tmp_path: Path) -> None:
    run(launch, 0, data, tmp_path, "--from", f"hf:{tuned / 'model'}", "--epochs", "1", "--threads", "1")
    assert summary(tmp_path)["accuracy"] == pytest.approx(summary(tuned)["accuracy"], abs=0.05)


@pytest.mark.soak
def test_a_run_that_is_stopped_goes_on_as_if_it_had_not_been(
    launch: Launch, data: Path, encoder: Path, tuned: Path, tmp_path: Path
) -> None:
    arguments = ["-m", "trainer", "--data", data, "--output", tmp_path, "--from", f"hf:{encoder}", *TUNING]
    first = launch(0, *arguments, "--slow", "0:20")
    record = tmp_path / "record.jsonl"
    while first.poll() is None and not (record.exists() and record.read_text().count('"kind": "step"') >= 5):
        time.sleep(0.05)
    first.send_signal(signal.SIGTERM)
    _, errors = first.communicate(timeout=60)
    assert summary(tmp_path)["stopped"], errors
    run(launch, 0, data, tmp_path, "--from", f"hf:{encoder}", *TUNING, "--resume")
    assert losses(tmp_path) == pytest.approx(losses(tuned), rel=1e-4)


def test_rows_of_bytes_are_refused(launch: Launch, encoder: Path, tmp_path: Path) -> None:
    other = made_encoder.dataset(tmp_path / "bytes.h5", words="bytes", vocabulary_size=256)
    said = refused(launch, other, tmp_path / "out", f"hf:{encoder}")
    assert "the dataset's rows are bytes, and an encoder reads words" in said


def test_a_name_that_the_hub_cannot_be_asked_for_is_one_sentence(launch: Launch, data: Path, tmp_path: Path) -> None:
    said = refused(launch, data, tmp_path / "out", "hf:bert-base-uncased", HF_HUB_OFFLINE="1")
    assert "cannot read the encoder bert-base-uncased, which is no folder here, from the hub: " in said


def test_without_the_library_one_sentence_says_how_to_install_it(
    data: Path, encoder: Path, tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    given = ["--data", str(data), "--output", str(tmp_path / "out"), "--from", f"hf:{encoder}"]
    assert main(["train", "--local", *given]) == 1
    sentence = "an encoder needs the library transformers; install it by: pip install 'shoal[encoders]'"
    assert capsys.readouterr().err == f"shoal: {sentence}\n"
    with pytest.raises(TrainingError) as told:
        load_model(tuned)
    assert str(told.value) == sentence


def without_layer(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    state = load_file(folder / "model.safetensors")
    kept = {name: each for name, each in state.items() if "layer.1." not in name}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


def replaced(name: str, content: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).write_text(content)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (replaced("config.json", "{"), "cannot read the encoder"),
        (replaced("config.json", '{"model_type": "nobody"}'), "cannot read the encoder"),
        (replaced("config.json", '{"model_type": "bert", "num_attention_heads": 5}'), "cannot read the encoder"),
        (replaced("model.safetensors", "short"), "cannot read the encoder"),
        (replaced("tokenizer.json", "{"), "cannot read the encoder"),
        (without_layer, "which its configuration asks for"),
        (replaced("config.json", '{"auto_map": {"AutoConfig": "code.Config"}}'), "cannot read the encoder"),
    ],
)
def test_a_damaged_folder_is_one_sentence(
    encoder: Path, tmp_path: Path, damage: Callable[[Path], Any], sentence: str
) -> None:
    folder = copytree(encoder, tmp_path / "encoder")
    damage(folder)
    with pytest.raises(TrainingError, match=sentence) as told:
        read_encoder_weights(str(folder), read_encoder_files(str(folder)))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["attn_implementation", "_attn_implementation"])
def test_a_configuration_gets_no_code_from_the_hub(encoder: Path, tmp_path: Path, name: str) -> None:
    folder = copytree(encoder, tmp_path / "encoder")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, name: "anybody/kernel"}))
    assert read_encoder_weights(str(folder), read_encoder_files(str(folder)))


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    folder = made_encoder.bert(tmp_path / "encoder", PIECES, pickled=True)
    with pytest.raises(TrainingError, match="pickled weights alone"):
        find_start_model(f"hf:{folder}")
    with pytest.raises(TrainingError, match="cannot read the encoder"):
        read_encoder_weights(str(folder), read_encoder_files(str(folder)))


def test_its_defaults_are_those_of_fine_tuning(encoder: Path) -> None:
    given = {"data": "x", "output": "y", "start_from": f"hf:{encoder}"}
    config = configured(start_options(given))
    assert (config.model, config.learning_rate, config.warm_up, config.schedule) == ("encoder", 2e-5, 0.1, "linear")
    assert find_start_model(f"hf:{encoder}").kind is Kind.ENCODER
    with pytest.raises(TrainingError, match="go together"):
        configured({**given, "model": "pretrained"})


def test_an_onnx_file_is_refused(tuned: Path, tmp_path: Path, capsys: Any) -> None:
    assert main(["export", "--model", str(tuned), "--output", str(tmp_path / "copy"), "--onnx"]) == 1
    assert "an encoder has no ONNX file of Shoal's" in capsys.readouterr().err
