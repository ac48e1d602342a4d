"""Models and checkpoints may come from other people: a file is refused with a sentence, or is complete and valid."""

import io
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DataError, TrainingError
from tests.trainer.classification.made_models import random_model, write_old_file
from trainer.classification import models
from trainer.classification.labelling import Labeller
from trainer.classification.loading import load_model
from trainer.classification.trained_model import TrainedModel
from trainer.computing.optimiser import Optimiser
from trainer.config import TrainConfig
from trainer.output import checkpoint
from trainer.output.archive import DamagedError, read, require_tensors

OWN = TrainConfig(data=Path("d"), output=Path("o"), embedding=4, hidden=3).model_settings("lstm", words=5, outputs=5)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A model file."""
    path = tmp_path_factory.mktemp("model") / "model.pt"
    write_old_file(path, random_model())
    return path.read_bytes()


def content(file: bytes) -> dict[str, Any]:
    return read(io.BytesIO(file))


@given(
    st.fixed_dictionaries(
        {
            **{name: st.integers(1, 9) for name in ("words", "outputs", "embedding", "hidden")},
            "layers": st.integers(1, 4),
            "pooling": st.sampled_from(["last", "mean", "mean+words"]),
        }
    )
)
@settings(max_examples=30)
def test_a_model_says_how_many_weights_it_has(chosen: dict[str, Any]) -> None:
    whole = {**OWN, **chosen}
    built = models.build("lstm", whole).state_dict()
    assert models.weights("lstm", whole) == sum(tensor.numel() for tensor in built.values())


def said(model: TrainedModel) -> list[float]:
    return [each.probability for each in Labeller(model)(["good song", "bad", "song bad good"])]


def settled(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda held: held["settings"].update(changes)


def lost(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda held: held["loss"].update(changes)


def table(made: Callable[[], Any]) -> Callable[[dict[str, Any]], None]:
    return lambda held: held["state"].update({"embedding.weight": made()})


def vast(held: dict[str, Any]) -> None:
    """Layers of gigabytes each in four bytes, by strides of nothing."""
    held["settings"].update(hidden=8192, layers=64)
    for name in list(held["state"]):
        held["state"][name] = torch.zeros(1).expand(8192, 8192)


HARM: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    **{
        f"no {name}": (lambda held, name=name: held.pop(name) and None, f"it has no {name}")
        for name in ("name", "settings", "loss", "vocabulary", "stopwords", "row_length", "about")
    },
    "no state": (lambda held: held.pop("state") and None, "it has no tensors"),
    "another rule of words": (lambda held: held.update(words="runes"), "its rule of words is 'runes', and this Shoal"),
    "names of other classes": (lambda held: held.update(classes=["a", "b", "c"]), "it has 3 names of classes, and its"),
    "measures that JSON cannot hold": (lambda held: held["about"].update(test={"loss": float("nan")}), "JSON"),
    "a list as measures": (lambda held: held["about"].update(test=[]), "its measures are not a table"),
    "another model": (lambda held: held.update(name="oracle"), "its model is oracle, but must be one of lstm"),
    "a path as model": (lambda held: held.update(name="../x"), "its model is ../x, but must be"),
    "an unknown setting": (settled(colour="red"), "'colour' is not a known field"),
    "an option of runs": (settled(seed=3), "'seed' is not a known field"),
    "a setting less": (lambda held: held["settings"].pop("hidden") and None, "its settings are not those of a model"),
    "a text as size": (settled(hidden="3"), "hidden is not of type int"),
    "half a size": (settled(hidden=3.0), "hidden is not of type int"),
    "another size": (settled(hidden=4), "the number of its weights is not that of"),
    "a model that fills the memory": (
        settled(hidden=8192, layers=64),
        "the number of its weights is not that of",
    ),
    "a huge size": (settled(embedding=10**9), "--embedding is 1000000000, but must be from 1 to 8192"),
    "endless layers": (settled(layers=10**9), "--layers is 1000000000, but must be from 1 to 64"),
    "some layers more": (settled(layers=9), "the number of its weights is not that of"),
    "another pooling": (settled(pooling="max"), "--pooling is max, but must be one of"),
    "words without end": (settled(words=10**12), "the number of its words or its outputs is not that of its settings"),
    "outputs without end": (settled(outputs=10**12), "the number of its words or its outputs is not that"),
    "words in letters": (settled(words="five"), "its words or its outputs are not numbers"),
    "a word more": (lambda held: held["vocabulary"].append("more"), "the number of its words or its outputs"),
    "a word twice": (lambda held: held["vocabulary"].__setitem__(0, "bad"), "or a word twice"),
    "a number as word": (lambda held: held["vocabulary"].__setitem__(0, 7), "an entry that is not a word"),
    "a list as word": (lambda held: held["vocabulary"].__setitem__(0, ["x"]), "an entry that is not a word"),
    "a command": (lambda held: held["stopwords"].append("\x1b[2J"), "an entry that is not a word"),
    "no row length": (lambda held: held.update(row_length=0), "the row length is 0"),
    "a huge row length": (lambda held: held.update(row_length=10**12), "the row length is 1000000000000"),
    "a row length of yes": (lambda held: held.update(row_length=True), "row_length is not of type int"),
    "another loss": (lost(kind="luck"), "its loss is 'luck', which is unknown"),
    "a list as loss": (lost(kind=[]), r"its loss is \[\], which is unknown"),
    "two ratings": (lost(scale=[1, 5]), "its ratings are not a scale"),
    "ratings in letters": (lost(scale=["1", "5", "4"]), "its ratings are not a scale"),
    "one class": (lost(scale=[1, 5, 1]), "its ratings are not a scale of two classes"),
    "no weight": (lost(positive_weight=float("nan")), "its weight of positive rows is not a number above 0"),
    "no temperature": (lost(temperature=0.0), "its temperature is not a number above 0"),
    "an endless temperature": (lost(temperature=float("inf")), "its temperature is not a number above 0"),
    "a temperature that torch cannot divide by": (lost(temperature=2**64), "its temperature is not a number above 0"),
    "a temperature next to nothing": (lost(temperature=5e-324), "its temperature is not a number above 0"),
    "a weight that is no float": (lost(positive_weight=10**400), "its weight of positive rows is not a number above 0"),
    "a threshold of all": (lost(threshold=1), "its threshold is not a number between 0 and 1"),
    "a threshold in letters": (lost(threshold="0.5"), "its threshold is not a number between 0 and 1"),
    "a class less": (lost(classes=1), "its classes are not a number of at least 2"),
    "classes in letters": (lost(classes="two"), "its classes are not a number of at least 2"),
    "a loss of two for three": (lost(classes=3), "its loss is cross-entropy with a weight of 0.5, which is not one of"),
    "classes without end": (
        lost(kind="softmax", positive_weight=1.0, classes=10**12),
        "the number of its words or its outputs is not that of its settings",
    ),
    "a tensor less": (lambda held: held["state"].popitem() and None, "the number of its weights is not that"),
    "a tensor more": (lambda held: held["state"].update(more=torch.ones(0)), "its tensors are not those"),
    "a list as tensor": (table(lambda: [1.0]), "its entry embedding.weight is not a tensor"),
    "another shape": (table(lambda: torch.ones(4, 5)), "its tensor embedding.weight is not of the shape"),
    "another type": (table(lambda: torch.ones(5, 4).double()), "its tensor embedding.weight is not of the shape"),
    "a sparse tensor": (table(lambda: torch.ones(5, 4).to_sparse()), "its entry embedding.weight is not a tensor"),
    "a tensor of nothing": (table(lambda: torch.empty(5, 4, device="meta")), "its entry embedding.weight is not a"),
    "one number for all": (
        table(lambda: torch.ones(1, 1).expand(5, 4)),
        "its entry embedding.weight is not a tensor, or not stored in",
    ),
    "no numbers": (table(lambda: torch.full((5, 4), float("nan"))), "its tensor embedding.weight has infinite or NaN"),
    "gigabytes": (vast, "its entry .* is not a tensor, or not stored in one piece"),
    "a list of models": (lambda held: held.clear(), "is not a model of format 4, which this Shoal reads"),
}


@pytest.mark.parametrize("kind", HARM)
def test_what_a_model_cannot_be_is_one_sentence(tmp_path: Path, written: bytes, kind: str) -> None:
    harm, sentence = HARM[kind]
    held = content(written)
    harm(held)
    torch.save(held, tmp_path / "model.pt")
    tracemalloc.start()
    with pytest.raises(TrainingError, match=sentence) as caught:
        load_model(tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()
    assert str(caught.value).startswith(f"{tmp_path / 'model.pt'} is not a model ")
    assert "\n" not in str(caught.value)


def test_an_archive_that_unpacks_to_more_than_it_is_is_refused(tmp_path: Path, written: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(written)) as archive, zipfile.ZipFile(tmp_path / "model.pt", "w") as packed:
        for member in archive.infolist():
            packed.writestr(member.filename, archive.read(member), zipfile.ZIP_DEFLATED)
    with pytest.raises(TrainingError, match=r"is not a model .*: it is compressed, which torch does not do"):
        load_model(tmp_path)


def test_a_member_that_is_marked_a_folder_is_refused_as_torch_would_not_read_it(tmp_path: Path, written: bytes) -> None:
    damaged = bytearray(written)
    directory = damaged.rindex(b"PK\x01\x02", 0, damaged.rindex(b"data/0"))
    damaged[directory + 38] = 16  # its attributes
    (tmp_path / "model.pt").write_bytes(damaged)
    with pytest.raises(TrainingError, match=r"is not a model .*data/0 has attributes, which torch does not set"):
        load_model(tmp_path)


def test_a_model_of_shoals_own_is_read(tmp_path: Path, written: bytes) -> None:
    (tmp_path / "model.pt").write_bytes(written)
    assert len(set(said(load_model(tmp_path)))) == 3


@settings(max_examples=150)
@given(data=st.data())
def test_a_model_with_flipped_bytes_is_refused_or_says_the_same(
    tmp_path_factory: pytest.TempPathFactory, written: bytes, data: st.DataObject
) -> None:
    path, file = tmp_path_factory.getbasetemp() / "flipped.pt", bytearray(written)
    for place in data.draw(st.lists(st.integers(0, len(file) - 1), min_size=1, max_size=3)):
        file[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(file)
    try:
        found = said(load_model(path))
    except TrainingError:
        return
    path.write_bytes(written)
    assert found == said(load_model(path))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150)
@given(data=st.data())
def test_whatever_a_model_claims_it_is_refused_or_can_predict(
    tmp_path_factory: pytest.TempPathFactory, written: bytes, data: st.DataObject
) -> None:
    path, held = tmp_path_factory.getbasetemp() / "claims.pt", content(written)
    for _ in range(data.draw(st.integers(1, 2))):
        place = held
        name = data.draw(st.sampled_from(sorted(place)))
        if isinstance(place[name], dict) and data.draw(st.booleans()):
            place = place[name]
            name = data.draw(st.sampled_from(sorted(place, key=str))) if place else "x"
        place[name] = data.draw(PLAIN)
    torch.save(held, path)
    with suppress(TrainingError):
        assert all(0 <= probability <= 1 for probability in said(load_model(path)))


def saved() -> dict[str, Any]:
    """A checkpoint's state after a step."""
    classifier = models.build("lstm", OWN)
    adam = Optimiser(classifier, [classifier.embedding.weight], TrainConfig(data=Path("d"), output=Path("o")))
    sum(parameter.sum() for parameter in classifier.parameters()).backward()
    adam.step(0.01)
    return {
        "format": checkpoint.FORMAT,
        "search": {},
        "config": {"seed": 0},
        "digest": "a" * 32,
        "global_batch": 8,
        "launchers": ["one", "another"],
        "progress": {"epoch": 1, "step": 2, "rows_seen": 9, "seconds": 1.5, "loss_sum": 0.5, "validation": None},
        "model": classifier.state_dict(),
        "optimiser": adam.state(),
        "task": {},
    }


def restored(state: dict[str, Any]) -> Any:
    classifier = models.build("lstm", OWN)
    adam = Optimiser(classifier, [classifier.embedding.weight], TrainConfig(data=Path("d"), output=Path("o")))
    checkpoint.require_state(state)
    return checkpoint.restore(state, classifier, adam, lambda _: None, where=Path("there"))


def test_a_checkpoint_of_the_same_model_is_gone_on_from() -> None:
    state = saved()
    state["progress"]["validation"] = {"accuracy": 0.5}
    assert (restored(state).epoch, restored(state).step) == (1, 2)


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        *(
            (lambda state, name=name: state.pop(name), f"it holds no {name}")
            for name in ("config", "digest", "global_batch", "launchers", "progress", "model", "optimiser")
        ),
        (lambda state: state.update(format=checkpoint.FORMAT + 1), "it is not of format"),
        (lambda state: state.update(global_batch="8"), "it holds no global_batch"),
        (lambda state: state.update(global_batch=0), "options that are unknown"),
        (lambda state: state.update(launchers=[[]]), "it holds no launchers"),
        (lambda state: state["config"].update(colour="red"), "options that are unknown"),
        (lambda state: state["config"].update(rank_batch="8"), "rank_batch is not of type"),
        (lambda state: state["progress"].update(epoch="1"), "epoch is not of type int"),
        (lambda state: state["progress"].update(step=-1), "its progress has numbers that no run comes to"),
        (lambda state: state["progress"].update(epoch=10**18), "its progress has numbers that no run comes to"),
        (lambda state: state["progress"].update(age=1), "'age' is not a known field"),
        (lambda state: state["progress"].update(validation=1), "validation is not of type"),
        (lambda state: state["optimiser"].update({"first.0": []}), "its entry first.0 is not a tensor"),
        (lambda state: state["model"].update(x=torch.tensor(torch.inf)), "its tensor x has infinite or NaN values"),
    ],
)
def test_what_is_no_state_of_a_run_is_known_by_itself(harm: Callable[[dict[str, Any]], Any], sentence: str) -> None:
    state = saved()
    harm(state)
    with pytest.raises((DamagedError, DataError), match=sentence):
        checkpoint.require_state(state)


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lambda state: state["model"].popitem(), "its tensors are not those"),
        (lambda state: state["model"].update({"head.1.bias": torch.ones(7)}), "head.1.bias is not of the shape"),
        (lambda state: state["optimiser"].clear(), "are not of this run"),
        (lambda state: state["optimiser"].update({"first.0": torch.ones(3)}), "first.0 is not of the shape"),
    ],
)
def test_a_checkpoint_of_another_run_is_one_sentence(harm: Callable[[dict[str, Any]], Any], sentence: str) -> None:
    state = saved()
    harm(state)
    with pytest.raises(TrainingError, match=sentence) as caught:
        restored(state)
    assert str(caught.value).startswith("the checkpoints in there are not of this run: ")
    assert str(caught.value).endswith("; start in another --output")


def test_a_file_that_is_no_archive_is_damaged() -> None:
    for file in (b"", b"PK", b"PK\x05\x06" + bytes(18), b"\x80\x02}q\x00."):
        with pytest.raises(DamagedError):
            read(io.BytesIO(file))
    listed = io.BytesIO()
    torch.save([1], listed)
    with pytest.raises(DamagedError, match="it is not a dictionary"):
        read(listed)
    with pytest.raises(DamagedError):
        require_tensors(["x"], {"x": torch.ones(1)})
