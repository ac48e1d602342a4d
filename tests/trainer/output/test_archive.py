"""Checkpoints from other people: a file is refused with a sentence, or is complete and valid."""

import io
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from common.errors import DataError, TrainingError
from tests.trainer.runs import changed
from trainer.classification import models
from trainer.classification.models.lstm_options import LSTMOptions
from trainer.computing.optimiser import Optimiser
from trainer.options.optimisation_options import OptimisationOptions
from trainer.output import checkpoint
from trainer.output.archive import DamagedError, read, require_tensors

OWN = LSTMOptions(embedding=4, hidden=3).model_settings(words=5, outputs=5)


def vast(state: dict[str, Any]) -> None:
    """Layers of gigabytes each in four bytes, by zero strides."""
    for name in list(state):
        state[name] = torch.zeros(1).expand(8192, 8192)


TABLES = {
    "a list": lambda: [1.0],
    "another shape": lambda: torch.ones(4, 5),
    "doubles": lambda: torch.ones(5, 4).double(),
    "a sparse tensor": lambda: torch.ones(5, 4).to_sparse(),
    "no values": lambda: torch.empty(5, 4, device="meta"),
    "one value": lambda: torch.ones(1, 1).expand(5, 4),
    "nan": lambda: torch.full((5, 4), float("nan")),
}
HARMS = {
    "a tensor less": lambda state: state.popitem() and None,
    "a tensor more": lambda state: state.update(more=torch.ones(0)),
    **{name: lambda state, made=made: state.update({"embedding.weight": made()}) for name, made in TABLES.items()},
    "vast": vast,
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_invalid_tensors_are_refused_in_little_memory(harm, messages):
    expected = models.build("lstm", OWN).state_dict()
    state = dict(expected)
    harm(state)
    tracemalloc.start()
    with messages.raises(DamagedError):
        require_tensors(state, expected)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def saved() -> dict[str, Any]:
    """Return a checkpoint's state after a step."""
    classifier = models.build("lstm", OWN)
    adam = Optimiser(classifier, [classifier.embedding.weight], OptimisationOptions())
    sum(parameter.sum() for parameter in classifier.parameters()).backward()
    adam.step(0.01)
    return {
        "format": checkpoint.FORMAT,
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
    adam = Optimiser(classifier, [classifier.embedding.weight], OptimisationOptions())
    checkpoint.require_state(state)
    return checkpoint.restore(state, classifier, adam, None, where=Path("there"))


def test_a_checkpoint_of_the_same_model_is_restored():
    state = saved()
    state["progress"]["validation"] = {"accuracy": 0.5}
    assert (restored(state).epoch, restored(state).step) == (1, 2)


WRONG = yaml.safe_load(Path(__file__).with_name("wrong_states.yaml").read_text())
WRONG["another format"] = {"format": checkpoint.FORMAT + 1}
WRONG["a tensor as format"] = {"format": torch.zeros(2)}
WRONG["an infinite weight"] = {"model.x": torch.tensor(torch.inf)}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
def test_an_invalid_state_is_recognised(changes, messages):
    with messages.raises((DamagedError, DataError)):
        checkpoint.require_state(changed(saved(), changes))


FOREIGN = {
    "a tensor less": lambda state: state["model"].popitem(),
    "another shape": lambda state: state["model"].update({"head.1.bias": torch.ones(7)}),
    "no moments": lambda state: state["optimiser"].clear(),
    "moments of another shape": lambda state: state["optimiser"].update({"first.0": torch.ones(3)}),
}


@pytest.mark.parametrize("harm", FOREIGN.values(), ids=FOREIGN)
def test_a_checkpoint_of_another_run_is_one_sentence(harm, messages):
    state = saved()
    harm(state)
    with messages.raises(TrainingError):
        restored(state)


def test_a_file_in_another_format_is_damaged():
    for file in (b"", b"PK", b"PK\x05\x06" + bytes(18), b"\x80\x02}q\x00."):
        with pytest.raises(DamagedError):
            read(file)
    listed = io.BytesIO()
    torch.save([1], listed)
    with pytest.raises(DamagedError, match="it is not a dictionary"):
        read(listed.getvalue())
    with pytest.raises(DamagedError):
        require_tensors(["x"], {"x": torch.ones(1)})
