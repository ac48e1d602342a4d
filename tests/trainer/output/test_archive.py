"""Checkpoints from other people: a file is refused with a sentence, or is complete and valid."""

import io
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from common.errors import DataError, TrainingError
from trainer.classification import models
from trainer.computing.optimiser import Optimiser
from trainer.config import TrainConfig
from trainer.output import checkpoint
from trainer.output.archive import DamagedError, read, require_tensors

OWN = TrainConfig(data=Path("d"), output=Path("o"), embedding=4, hidden=3).model_settings("lstm", words=5, outputs=5)


def vast(state: dict[str, Any]) -> None:
    """Layers of gigabytes each in four bytes, by zero strides."""
    for name in list(state):
        state[name] = torch.zeros(1).expand(8192, 8192)


def table(made: Callable[[], Any]) -> Callable[[dict[str, Any]], None]:
    return lambda state: state.update({"embedding.weight": made()})


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lambda state: state.popitem() and None, "its tensors do not match"),
        (lambda state: state.update(more=torch.ones(0)), "its tensors do not match"),
        (table(lambda: [1.0]), "its entry embedding.weight is not a contiguous tensor"),
        (table(lambda: torch.ones(4, 5)), "its tensor embedding.weight is not of the shape"),
        (table(lambda: torch.ones(5, 4).double()), "its tensor embedding.weight is not of the shape"),
        (table(lambda: torch.ones(5, 4).to_sparse()), "its entry embedding.weight is not a contiguous tensor"),
        (table(lambda: torch.empty(5, 4, device="meta")), "its entry embedding.weight is not a contiguous tensor"),
        (
            table(lambda: torch.ones(1, 1).expand(5, 4)),
            "its entry embedding.weight is not a contiguous tensor",
        ),
        (table(lambda: torch.full((5, 4), float("nan"))), "its tensor embedding.weight has infinite or NaN values"),
        (vast, "its entry .* is not a contiguous tensor"),
    ],
)
def test_invalid_tensors_are_refused_in_little_memory(harm: Callable[[dict[str, Any]], None], sentence: str) -> None:
    expected = models.build("lstm", OWN).state_dict()
    state = dict(expected)
    harm(state)
    tracemalloc.start()
    with pytest.raises(DamagedError, match=sentence):
        require_tensors(state, expected)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def saved() -> dict[str, Any]:
    """Return a checkpoint's state after a step."""
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


def test_a_checkpoint_of_the_same_model_is_restored() -> None:
    state = saved()
    state["progress"]["validation"] = {"accuracy": 0.5}
    assert (restored(state).epoch, restored(state).step) == (1, 2)


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        *(
            (lambda state, name=name: state.pop(name), f"it does not contain {name}")
            for name in ("config", "digest", "global_batch", "progress", "model", "optimiser")
        ),
        (lambda state: state.update(format=checkpoint.FORMAT + 1), "it is not of format"),
        (lambda state: state.update(format=torch.zeros(2)), "it is not of format"),
        (lambda state: state.update(global_batch="8"), "it does not contain global_batch"),
        (lambda state: state.update(global_batch=0), "unknown options"),
        (lambda state: state["config"].update(colour="red"), "unknown options"),
        (lambda state: state["config"].update(rank_batch="8"), "rank_batch is not of type"),
        (lambda state: state["progress"].update(epoch="1"), "epoch is not of type int"),
        (lambda state: state["progress"].update(step=-1), "its progress has impossible numbers"),
        (lambda state: state["progress"].update(epoch=10**18), "its progress has impossible numbers"),
        (lambda state: state["progress"].update(age=1), "'age' is not a known field"),
        (lambda state: state["progress"].update(validation=1), "validation is not of type"),
        (lambda state: state["optimiser"].update({"first.0": []}), "its entry first.0 is not a contiguous tensor"),
        (lambda state: state["model"].update(x=torch.tensor(torch.inf)), "its tensor x has infinite or NaN values"),
    ],
)
def test_an_invalid_state_is_recognised(harm: Callable[[dict[str, Any]], Any], sentence: str) -> None:
    state = saved()
    harm(state)
    with pytest.raises((DamagedError, DataError), match=sentence):
        checkpoint.require_state(state)


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lambda state: state["model"].popitem(), "its tensors do not match"),
        (lambda state: state["model"].update({"head.1.bias": torch.ones(7)}), "head.1.bias is not of the shape"),
        (lambda state: state["optimiser"].clear(), "do not belong to this run"),
        (lambda state: state["optimiser"].update({"first.0": torch.ones(3)}), "first.0 is not of the shape"),
    ],
)
def test_a_checkpoint_of_another_run_is_one_sentence(harm: Callable[[dict[str, Any]], Any], sentence: str) -> None:
    state = saved()
    harm(state)
    with pytest.raises(TrainingError, match=sentence) as caught:
        restored(state)
    assert str(caught.value).startswith("the checkpoints in there do not belong to this run: ")
    assert str(caught.value).endswith("; choose another --output")


def test_a_file_in_another_format_is_damaged() -> None:
    for file in (b"", b"PK", b"PK\x05\x06" + bytes(18), b"\x80\x02}q\x00."):
        with pytest.raises(DamagedError):
            read(file)
    listed = io.BytesIO()
    torch.save([1], listed)
    with pytest.raises(DamagedError, match="it is not a dictionary"):
        read(listed.getvalue())
    with pytest.raises(DamagedError):
        require_tensors(["x"], {"x": torch.ones(1)})
