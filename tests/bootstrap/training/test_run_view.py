import json
import time

import pytest

from bootstrap.training.run_view import RunView
from corpus.stream.progress import Status


class Screen:
    """Takes what a view shows."""

    def __init__(self) -> None:
        self.shown: list[object] = []

    def stage(self, name: str, total: int, unit: str = "step") -> None:  # noqa: ARG002
        self.shown.append((name, total))

    def begin_at(self, done: int) -> None:
        self.shown.append(("from", done))

    def at(self, done: int) -> None:
        self.shown.append(done)

    def pace(self, rate: float) -> None:
        self.rate = rate

    def say(self, **figures: str) -> None:
        self.figures = figures

    def note(self, text: str) -> None:
        self.shown.append(text)

    def tick(self) -> None:
        pass

    def leave(self) -> None:
        self.shown.append("left")


class Interrupted(Screen):
    """Ctrl-C at the first step that it is shown."""

    def at(self, done: int) -> None:
        if not self.shown.count(done):
            super().at(done)
            raise KeyboardInterrupt


START = {
    "kind": "start",
    "time": 0.0,
    "config": {},
    "epochs": 2,
    "world_size": 2,
    "devices": ["CPU", "CPU"],
    "rows": {"training": 160},
    "digest": "1",
    "steps": 10,
    "global_batch": 32,
    "from_step": 4,
    "own_rates": [300.0, 100.0],
}
STEP = {"kind": "step", "time": 0.0, "epoch": 2, "step": 6, "loss": 0.5, "split": [20, 12], "rows_per_second": 340.0}
STEP |= {"compute_seconds": [0.1, 0.1], "balanced": 0.9}
EPOCH = {"kind": "epoch", "time": 0.0, "epoch": 1, "loss": 0.5, "validation": {"balanced_accuracy": 0.75}}
END = {"kind": "end", "time": 0.0, "stopped": True}


def record(*lines: dict) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


HALF = json.dumps(STEP).encode()[:-5]


@pytest.mark.parametrize("line", [b"\xff", b"[]", b"7", b"{}", b'"kind"', b"[" * 100_000, b'{"kind": "step"}', HALF])
def test_a_line_that_no_run_writes_is_left_out(line: bytes) -> None:
    screen = Screen()
    RunView(screen).feed(record(START) + line + b"\n" + record(STEP))
    assert screen.shown == [("train", 320), ("from", 128), 192]


def test_nothing_is_shown_before_the_run_has_started() -> None:
    screen = Screen()
    RunView(screen).feed(b"")
    assert screen.shown == []


def test_a_resumed_run_is_shown_from_where_it_continues() -> None:
    screen = Screen()
    view = RunView(screen)
    view.feed(record(START))
    assert screen.shown == [("train", 320), ("from", 128)]
    more = record(STEP, EPOCH, STEP)
    for place in range(len(more)):
        view.feed(more[place : place + 1])
    assert screen.shown[2:] == [192, 192]
    assert screen.figures == {
        "loss": "0.500",
        "balanced": "90%",
        "of ideal": "85%",
        "epoch": "2",
        "balanced accuracy": "75.0%",
        "split": "20+12",
        "step": "6",
    }
    assert screen.rate == 340.0
    assert view.offset == len(record(START)) + len(more)


def test_earlier_runs_and_restarted_ranks_share_one_bar() -> None:
    screen = Screen()
    RunView(screen).feed(record({**START, "from_step": 0}, STEP, END, START, STEP))
    assert screen.shown == [("train", 320), ("from", 0), 192, ("from", 128), 192]


def test_a_record_that_was_begun_anew_is_read_from_its_beginning() -> None:
    screen = Screen()
    view = RunView(screen)
    view.feed(record(START, STEP) + b'{"kind": "st')
    view.begin_again()
    assert view.offset == 0
    view.feed(record({**START, "from_step": 0}))
    assert screen.shown[-1] == ("from", 0)


def test_a_note_is_shown_once_and_those_of_earlier_runs_are_not() -> None:
    screen = Screen()
    view = RunView(screen)
    told = [{"kind": "note", "time": time.time() + after, "text": text} for after, text in ((-60, "old"), (1, "lost"))]
    view.feed(record(START, *told))
    assert screen.shown[-1] == "lost"
    assert "old" not in screen.shown


def waiting(since: float, seconds: float = 0.0) -> dict:
    return {"kind": "waiting", "time": time.time() - since, "step": 6, "seconds": seconds}


def test_a_run_that_waits_for_text_says_so_while_it_does() -> None:
    screen = Screen()
    view = RunView(screen)
    view.feed(record(START, STEP, waiting(0)))
    assert screen.figures["waiting"] == "for text"
    view.feed(record(waiting(0, 2.5)))
    assert "waiting" not in screen.figures


def test_a_long_wait_for_text_is_a_sentence_once_and_one_that_is_over_is_none() -> None:
    screen = Screen()
    view = RunView(screen)
    view.feed(record(START, waiting(600), waiting(300, 300.0), STEP, waiting(200)))
    view.feed(b"")
    assert screen.shown[3:] == ["no text has come for 30 seconds; the run waits for it"]


def test_a_bar_stays_where_the_run_ended() -> None:
    screen = Screen()
    RunView(screen).feed(record(START, STEP, END))
    assert screen.shown[-2:] == [192, "left"]


def test_the_cost_so_far_is_shown_while_nothing_new_comes() -> None:
    screen, dollars = Screen(), iter([0.41, 0.416])
    view = RunView(screen, spent=lambda: next(dollars))
    view.feed(b"")
    assert "cost so far" not in screen.figures  # nothing is trained yet
    view.feed(record(START))
    view.feed(b"")
    assert screen.figures["cost so far"] == "$0.42"


def test_the_words_that_readers_have_read_are_shown_also_before_the_ranks_begin() -> None:
    screen = Screen()
    view = RunView(screen, read=lambda: Status(words=12_345))  # type: ignore[arg-type]
    view.feed(b"")
    assert screen.figures == {"words read": "12,345"}


def test_a_long_wait_for_a_vocabulary_is_a_sentence_once(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    view = RunView(screen, read=lambda: Status(words=12_345))  # type: ignore[arg-type]
    view.feed(b"")
    assert not screen.shown
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 60)
    view.feed(b"")
    view.feed(b"")
    assert screen.shown == ["12,345 words have come so far; the run begins with a vocabulary (--vocabulary-words)"]


def test_an_interrupt_loses_no_line() -> None:
    screen = Interrupted()
    view = RunView(screen)
    with pytest.raises(KeyboardInterrupt):
        view.feed(record(START, STEP, {**STEP, "step": 7}))
    with pytest.raises(KeyboardInterrupt):
        view.feed(b"")
    assert screen.shown[-2:] == [6 * 32, 7 * 32]


def test_a_search_is_shown_by_its_time_until_the_run_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, now = Screen(), [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    view = RunView(screen)
    search = {"kind": "search", "time": 1000.0, "limit": 300.0, "spent": 20.0, "rows": 900, "folds": 5}
    trial = {"kind": "trial", "time": 1000.0, "trial": 1, "settings": {"model": "fasttext", "ngrams": 3}}
    trial |= {"measures": {}, "folds": 5, "seconds": 9.0, "best": True}
    view.feed(record(search))
    now[0] = 1030.0
    view.feed(record(trial, {**trial, "trial": 2, "settings": {}, "best": False}))
    assert screen.figures == {"trials": "2", "best": "--model fasttext --ngrams 3"}
    now[0] = 2000.0
    view.feed(b"")
    assert screen.shown == [("search", 300), 20, 50, 300]
    view.feed(record({**START, "from_step": 0}))
    assert screen.shown[-2:] == [("train", 320), ("from", 0)]
