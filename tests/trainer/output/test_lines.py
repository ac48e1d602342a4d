"""Lines of the record: a written line is read unchanged; any other line is ignored."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.output.lines import Checkpoint, End, Epoch, Note, Start, Step, Test, Waiting, parse_line

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SECONDS = st.floats(min_value=0, max_value=1e9)
COUNTS = st.integers(min_value=0, max_value=2**53 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
MEASURES = st.dictionaries(st.sampled_from(["accuracy", "similarity", "macro_f1"]), NUMBERS | st.none())
LINES = st.one_of(
    st.builds(
        Start,
        time=SECONDS,
        config=st.dictionaries(TEXTS, TEXTS),
        world_size=st.integers(1, 64),
        devices=st.lists(TEXTS).map(tuple),
        rows=st.dictionaries(TEXTS, COUNTS),
        own_rates=st.lists(SECONDS).map(tuple),
        **dict.fromkeys(("digest", "precision"), TEXTS),
        **dict.fromkeys(("global_batch", "epochs"), st.integers(1, 2**20)),
        **dict.fromkeys(("steps", "from_step"), COUNTS),
    ),
    st.builds(
        Step,
        time=SECONDS,
        loss=NUMBERS,
        split=st.lists(COUNTS).map(tuple),
        compute_seconds=st.lists(SECONDS).map(tuple),
        **dict.fromkeys(("epoch", "step"), COUNTS),
        **dict.fromkeys(("rows_per_second", "balanced"), SECONDS | st.none()),
    ),
    st.builds(Checkpoint, time=SECONDS, step=COUNTS, file=TEXTS, seconds=SECONDS),
    st.builds(Waiting, time=SECONDS, step=COUNTS, seconds=SECONDS),
    st.builds(Note, time=SECONDS, text=TEXTS),
    st.builds(Epoch, time=SECONDS, epoch=COUNTS, loss=NUMBERS, validation=MEASURES),
    st.builds(Test, time=SECONDS, epoch=COUNTS, loss=NUMBERS, measures=MEASURES),
    st.builds(End, time=SECONDS, summary=MEASURES),
)


@given(LINES)
def test_a_line_survives_a_round_trip(line):
    assert parse_line(json.dumps(line.plain()).encode()) == line


@given(LINES, st.data())
def test_an_incomplete_line_is_ignored(line, data):
    written = json.dumps(line.plain()).encode()
    assert parse_line(written[: data.draw(st.integers(0, len(written) - 1))]) is None


@given(LINES, st.data())
def test_a_line_with_a_value_of_wrong_type_is_ignored(line, data):
    content = line.plain()
    name = data.draw(st.sampled_from(sorted({*content} & {"kind", "time", "step", "epoch", "loss", "split", "text"})))
    assert parse_line(json.dumps({**content, name: {"another": "type"}}).encode()) is None


def test_the_loss_is_among_the_measures_of_a_test_once_and_fields_of_another_version_are_ignored():
    line = Test.of(3, {"loss": 0.5, "accuracy": 0.9})
    assert (line.epoch, line.loss, line.measures) == (3, 0.5, {"accuracy": 0.9})
    note = Note(time=1.0, text="lost")
    assert parse_line(json.dumps({**note.plain(), "colour": "red"}).encode()) == note


@pytest.mark.parametrize("step", [-1, True, 1.0, "1", None, 2**53, 2**64])
def test_a_step_is_a_count(step):
    line = {"kind": "waiting", "time": 1.0, "step": 1, "seconds": 0.0}
    assert parse_line(json.dumps(line).encode()) is not None
    assert parse_line(json.dumps({**line, "step": step}).encode()) is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e400", "-1.0", "2.51e11"])
def test_a_time_is_a_date(number):
    assert parse_line(b'{"kind": "note", "text": "x", "time": %s}' % number.encode()) is None
