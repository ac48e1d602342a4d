"""Stored documents are read as they were written; a changed one is another valid document, or refused."""

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bootstrap.node.documents import JsonDocument, RequestDocument, token_in
from common.errors import DataError, ExperimentError, ShoalError, TrainingError
from common.json_values import parse_json_object
from corpus.dataset_settings import Settings
from corpus.raw_texts import TextProgress
from corpus.stream import progress
from corpus.stream.stream_settings import StreamSettings, read_settings
from experiments.records import read_run
from jobs.choose import VocabularyChoice, read_vocabulary_choice
from jobs.merge import MergeResult, read_merge_result
from shoal.aws import boot_report
from tests.bootstrap.node.test_documents import DOCUMENTS as OF_NODES
from tests.bootstrap.node.test_documents import REQUESTS
from tests.bootstrap.node.world import STREAM
from tests.experiments import made_records as records
from tests.shoal.backends.test_local import FINISHED
from tests.shoal.cli.known_model import save
from tests.trainer.output.test_checkpoint import state
from trainer.classification.model_folder import read_model_folder
from trainer.distributed import failures
from trainer.output import checkpoint
from trainer.output.summary import read_summary


@dataclass(frozen=True)
class Stored:
    """Kind of document, and the function that reads it."""

    text: str
    """Content that Shoal writes: JSON, or lines of JSON."""
    read: Callable[[str, Path], object]
    """Read a text, which may be written to an empty folder first. None means that the document is ignored."""
    refusal: type[Exception] | tuple[()]
    """Error for an invalid document; () if invalid documents raise no error."""
    again: Callable[[Any], str] | None = None
    """Write the result; None if Shoal does not write this document from it."""


def in_file(name: str, read: Callable[[Path], object], **beside: str) -> Callable[[str, Path], object]:
    """Read a text from this file in a folder with other files."""

    def written(text: str, folder: Path) -> object:
        for path, content in {**beside, name: text}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(content, "utf-8", "surrogatepass")
        return read(folder)

    return written


def lines_of(*written: dict[str, Any]) -> str:
    return "\n".join(map(json.dumps, written))


def read_checkpoint(text: str, folder: Path) -> object:
    """Read a checkpoint with these values; an invalid one is skipped."""
    values = parse_json_object(text)
    checkpoint.save(folder, {**values, "model": state(1)["model"]} if "model" in values else values, steps=1)
    found, passed_over = checkpoint.newest(folder)
    if found is None:
        raise DataError(passed_over[0].why)
    return found


def read_model(text: str, folder: Path) -> object:
    """Read a model with this text in `config.json`, except the digest of its content."""
    from trainer.classification import model_folder

    for name, content in MODEL.items():
        (folder / name).write_bytes(content)
    try:
        values = json.loads(text)
        if "digest" in values:
            values["digest"] = model_folder._digest(values)
            text = json.dumps(values)
    except (ValueError, TypeError, RecursionError):
        pass
    (folder / "config.json").write_text(text, "utf-8", "surrogatepass")
    return read_model_folder(folder, "the model")


RECORD = lines_of(
    records.start(),
    records.step(1, 101.0),
    records.epoch(1, 105.5),
    records.checkpoint(20, 110.6),
    records.waiting(20, 110.7),
    records.tested(111.0),
    records.end(111.5),
)
REPORTED = progress.Status(lines=3, words=9, parts=2)
FAILED = failures.Failure(kind=failures.FailureKind.CAUSE, time=5.0, what="it broke", where="in step 3")
MERGED = MergeResult(
    dataset="out/dataset.h5",
    counts={
        "lengths": {"1": 2},
        "ratings": {"before": {"1": 1}, "after": {"1": 1}},
        "labels": {"before": {"0": 1, "1": 1}, "after": {"0": 1, "1": 1}},
        "frequent_words": [["good", 2]],
    },
    digest="0" * 32,
    malformed=[{"reason": "not_json", "file": "a", "line": 3, "begins": "{"}],
)


def reading(kind: type[JsonDocument]) -> Callable[[str, Path], object]:
    return lambda text, _: kind.from_json(text)


with tempfile.TemporaryDirectory() as made:
    save(Path(made))
    MODEL = {path.name: path.read_bytes() for path in (Path(made) / "model").iterdir()}
LAUNCH = {"began": 1.0, "seconds": 3.0, "nodes": [{"instance_type": "g5.xlarge", "gpus": 2}], "earlier": [{}]}
DOCUMENTS = {
    **{
        f"a document of nodes, {number}": Stored(each.to_json(), reading(type(each)), DataError, type(each).to_json)
        for number, each in enumerate(OF_NODES)
    },
    "the token of a request": Stored(RequestDocument(runs=REQUESTS[:1]).to_json(), lambda text, _: token_in(text), ()),
    "a node's first boot": Stored('{"state": "ready", "log": "x"}', lambda text, _: boot_report.parse(text), ()),
    "what was read of texts": Stored(
        '{"read": 3, "lines": 2}', lambda text, _: TextProgress.from_json(text), DataError
    ),
    "settings of a dataset": Stored(
        json.dumps(Settings(ragged=True, labelled=True, classes=("a", "b", "c")).to_json()),
        lambda text, _: Settings.from_json(parse_json_object(text)),
        DataError,
        lambda found: json.dumps(found.to_json()),
    ),
    "settings of a stream": Stored(
        STREAM.to_json(), in_file("stream.json", read_settings), DataError, StreamSettings.to_json
    ),
    "a reader's status": Stored(
        json.dumps(asdict(REPORTED)),
        in_file("reader-0/status.json", progress.read_status),
        DataError,
        lambda found: json.dumps(asdict(found)),
    ),
    "what trainers took": Stored(
        '{"reader-0": 2}', in_file("taken.json", lambda at: progress.read_taken(at, at / "reader-0", 5)), DataError
    ),
    "a checkpoint": Stored(json.dumps({**state(1), "model": {}}, default=str), read_checkpoint, DataError),
    "a record": Stored(RECORD, in_file("record.jsonl", read_run), ExperimentError),
    "what a command wrote of a run": Stored(
        json.dumps(LAUNCH), in_file("launch.json", read_run, **{"record.jsonl": RECORD}), ExperimentError
    ),
    "the summary of a run": Stored(json.dumps(FINISHED), in_file("summary.json", read_summary), ShoalError, json.dumps),
    "a model": Stored(
        MODEL["config.json"].decode(),
        read_model,
        TrainingError,
    ),
    "the chosen vocabulary": Stored(
        json.dumps(asdict(VocabularyChoice(positive_from=3, joined="good", counts=[2]))),
        in_file("choice.json", lambda at: read_vocabulary_choice(str(at / "choice.json"))),
        DataError,
        lambda found: json.dumps(asdict(found)),
    ),
    "the summary of a merge": Stored(
        json.dumps(asdict(MERGED)),
        in_file("merged.json", lambda at: read_merge_result(str(at / "merged.json"))),
        DataError,
        lambda found: json.dumps(asdict(found)),
    ),
    "a rank's failure": Stored(FAILED.line(), lambda text, _: failures.parse(text), (), failures.Failure.line),
}


@pytest.mark.parametrize("stored", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_document_is_read_as_it_was_written(stored: Stored, tmp_path: Path) -> None:
    found = stored.read(stored.text, tmp_path)
    assert found is not None
    if stored.again is not None:
        assert stored.again(found) == stored.text


WRONG = [None, True, -1, 0, 1, 1.5, 10**400, float("nan"), float("inf"), 1e308, "", "x", "../x", "\ud800"]
VALUES: st.SearchStrategy[Any] = st.sampled_from([*WRONG, [], [1], ["x"], [[]], {}]) | st.just({"x": {}})


@st.composite
def harmed(draw: st.DrawFn, text: str) -> str:
    """Draw a document with a value removed, replaced or added anywhere, truncated, or too large."""
    how = draw(st.sampled_from(["remove", "replace", "replace", "add", "cut", "large", "deep"]))
    lines = [text] if text.startswith("{\n") else text.split("\n")
    number = draw(st.integers(0, len(lines) - 1))
    begin = max(0, lines[number].find("{"))
    head, line = lines[number][:begin], lines[number][begin:]
    if how == "cut":
        changed = line[: draw(st.integers(0, len(line) - 1))] + draw(st.sampled_from(["", "\0", "}"]))
    elif how == "large":
        changed = line[:-1] + " " * 3_000_000 + line[-1:]
    else:
        changed = _with_another_value(draw, line, how)
    return "\n".join([*lines[:number], head + changed, *lines[number + 1 :]])


def _with_another_value(draw: st.DrawFn, line: str, how: str) -> str:
    whole: dict[str, Any] = {"": json.loads(line)}
    at: Any = whole
    key: Any = ""
    while isinstance(at[key], (dict, list)) and at[key] and (at is whole or draw(st.booleans())):
        at = at[key]
        key = draw(st.sampled_from(sorted(at)) if isinstance(at, dict) else st.integers(0, len(at) - 1))
    if how == "remove":
        del at[key]
    elif how == "add" and isinstance(at, list):
        at.append(draw(VALUES))
    else:
        at["unknown" if how == "add" else key] = "DEEP" if how == "deep" else draw(VALUES)
    text = json.dumps(whole[""]) if "" in whole else ""
    return text.replace('"DEEP"', "[" * 100_000 + "]" * 100_000)


@settings(max_examples=60)
@pytest.mark.parametrize("stored", DOCUMENTS.values(), ids=DOCUMENTS)
@given(data=st.data())
def test_a_changed_document_is_another_valid_one_or_refused(
    stored: Stored, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = data.draw(harmed(stored.text))
    sentence = "one"
    try:
        found = stored.read(text, tmp_path_factory.mktemp("read"))
    except stored.refusal as error:
        sentence = str(error)
    else:
        if stored.again is not None and found is not None:
            text = stored.again(found)
            assert stored.again(stored.read(text, tmp_path_factory.mktemp("again"))) == text
    assert len(sentence.splitlines()) == 1
