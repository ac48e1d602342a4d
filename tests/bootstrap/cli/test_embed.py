"""`shoal embed`: from text to word embeddings, and what is said of text and options that do not fit."""

import json
from pathlib import Path

import pytest

from bootstrap.cli.main import main
from tests.bootstrap.cli.command import ACCOUNT, shoal
from tests.trainer.embeddings import made_text

WORDS = ("embed", "--local", "--embedding", "16", "--min-count", "1", "--threads", "1")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(made_text.lines(1000)) + "\n")
    return path


@pytest.fixture(scope="module")
def stream(text: Path) -> Path:
    """A folder in which readers have left words."""
    return made_text.stream(text.parent / "stream", made_text.lines(200))


def said(capsys: pytest.CaptureFixture[str], status: int, *arguments: object) -> str:
    """The sentence with which a command ends."""
    assert main([*map(str, arguments)]) == status
    sentence = " ".join(capsys.readouterr().err.split())
    assert "Traceback" not in sentence
    assert sentence.startswith("shoal: ")
    return sentence


def test_a_finished_model_is_not_replaced_unasked(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("config.json", "vectors.bin"):
        (tmp_path / "model").mkdir(exist_ok=True)
        (tmp_path / "model" / name).write_text("{}")
    assert "is a finished model; add --force" in said(capsys, 1, *WORDS, "--input", text, "--output", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model" / "vectors.bin").read_text() == "{}"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "there is nothing to learn from; give --input FILE_OR_S3..., or --data DIR"),
        (("--input", "{text}", "--data", "{stream}"), "--data a folder with what was read before; give one of them"),
        (("--input", "{text}", "--nodes", "0"), "0 is not in the range 1<=x<=1024"),
        (("--input", "{text}", "--model", "lstm"), "'lstm' is not one of 'skipgram', 'char-lstm'"),
        (("--input", "{text}", "--preset", "fasttext"), "'fasttext' is not one of 'sgns', 'sgns-char'"),
        (("--input", "{text}", "--rates", "{text}"), "no such option '--rates'"),
        (("--input", "{text}", "--test-input", "{text}"), "no such option '--test-input'"),
        (("--input", "{text}", "--embeddings", "{stream}"), "no such option '--embeddings'"),
        (("--data", "{stream}", "--readers", "2"), "--readers goes with --input"),
        (("--data", "{stream}", "--follow"), "--follow goes with --input"),
        (("--data", "{stream}", "--max-malformed", "0.5"), "--max-malformed goes with --input"),
        (("--input", "{text}", "--readers", "0"), "readers is 0; choose 1 to 1,024"),
        (("--input", "{text}", "{text}"), "sources has an address twice; name each once"),
        (("--input", "tcp://localhost"), "'tcp://localhost' is not the address of a socket"),
        (("--input", "{text}", "--tokeniser", "best"), "'best' is not one of"),
        (
            ("--input", "{text}", "--mode", "average:0"),
            "--mode is average:0, but must be sync, or average:K or async:K",
        ),
        (
            ("--input", "{text}", "--mode", "async:5", "--optimiser", "adam"),
            "take --optimiser adagrad or sgd, or --mode sync",
        ),
        (("--input", "{text}", "--minutes", "5"), "--minutes goes with an unbounded stream (--follow)"),
        (("--input", "{text}", "--vocabulary-words", "5"), "--vocabulary-words goes with an unbounded stream"),
        (("--input", "{text}", "--follow", "--pip"), "--pip goes with finite text"),
        (("--input", "{text}", "--resume", "--force"), "give one of them"),
    ],
)
def test_options_that_do_not_fit_are_wrong_use(
    text: Path,
    stream: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [each.format(text=text, stream=stream) for each in options]
    assert sentence in said(capsys, 2, *WORDS, *given, "--output", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--follow", "--lemmatize", "--mode", "--window"])
def test_a_classifier_has_no_options_of_word_embeddings(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("train", "--local", "--data", "rows.h5", "--output", tmp_path / "out", option)
    assert f"no such option '{option}'" in said(capsys, 2, *arguments)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "there is nothing to learn from; give --input s3://..."),
        (("--data", "stream"), "--data is a folder of this machine, and goes with --local; give --input s3://..."),
        (("--input", "s3://texts/news", "--nodes", "2"), "--nodes goes with --local"),
    ],
)
def test_options_that_do_not_fit_a_deployment_are_wrong_use(
    options: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("embed", "--deployment", "words", "--output", "out", *options)
    assert sentence in said(capsys, 2, *arguments)


def test_a_dry_run_shows_the_beginning_of_the_text_and_reads_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_bytes(b"\nThe sea's blue: 1.\n" + b"\xff\n" * 3)
    (tmp_path / "empty.txt").touch()
    arguments = (*WORDS, "--input", tmp_path, "--output", tmp_path / "out", "--dry-run")
    assert main([*map(str, arguments), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["files"], shown["bytes"], shown["goes_on"]) == (1, 26, False)
    assert shown["sample"]["example"] == ["the", "sea", "'", "s", "blue", ":", "1", "."]
    assert (shown["sample"]["lines"], shown["sample"]["malformed"], shown["sample"]["words"]) == (5, 3, 8)
    assert main([*map(str, arguments), "--follow", "--readers", "2"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "none: what comes is read, too" in told
    assert "readers 2" in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--input", "{folder}/none.txt"), "{folder}/none.txt: no such file"),
        (("--input", "{folder}/empty"), "there are no files at {folder}/empty; check the address"),
        (("--input", "{folder}/blank.txt"), "there is no word in {folder}/blank.txt"),
        (("--data", "{folder}/blank.txt"), "there is no {folder}/blank.txt/stream.json"),
        (("--data", "{folder}/empty"), "there is no {folder}/empty/stream.json"),
        (("--input", "{text}", "--similarity", "{text}"), "text.txt, line 1: it has not two words and a number"),
        (("--input", "{text}", "--similarity", "{folder}/none"), "cannot read {folder}/none"),
        (("--input", "{text}", "--analogy", "{folder}/blank.txt"), "blank.txt has no question; give Google's format"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(
    text: Path, tmp_path: Path, options: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "blank.txt").write_text("\n \n")
    given = [each.format(text=text, folder=tmp_path) for each in options]
    assert sentence.format(folder=tmp_path) in said(capsys, 1, *WORDS, *given, "--output", tmp_path / "out")
    assert not (tmp_path / "out" / "model").exists()


def test_sets_of_another_format_are_named_before_the_text_is_read(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, 1, *WORDS, "--input", text, "--similarity", text, "--output", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_bucket_that_nobody_has_is_one_sentence(tmp_path: Path) -> None:
    nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_DEFAULT_REGION": "us-east-1", **ACCOUNT}
    done = shoal(*WORDS, "--input", "s3://none/texts", "--output", tmp_path / "out", **nowhere)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "127.0.0.1:9" in done.stderr
