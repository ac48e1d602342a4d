import json

from bootstrap.watch import RunView, parse


class Screen:
    """Takes what a view shows."""

    def __init__(self) -> None:
        self.shown: list[object] = []

    def stage(self, name: str, total: int) -> None:
        self.shown.append((name, total))

    def at(self, done: int) -> None:
        self.shown.append(done)

    def say(self, **figures: str) -> None:
        self.figures = figures


START = {"kind": "start", "steps": 10, "global_batch": 32, "from_step": 4, "own_rates": [300.0, 100.0]}
STEP = {"kind": "step", "epoch": 1, "step": 6, "loss": 0.5, "split": [20, 12], "rows_per_second": 340.0}
EPOCH = {"kind": "epoch", "validation": {"balanced_accuracy": 0.75}}


def record(*lines: dict) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_half_a_line_waits_for_its_other_half() -> None:
    assert list(parse(record(START) + json.dumps(STEP).encode()[:-5])) == [START]


def test_half_a_line_that_a_killed_run_left_is_passed_over() -> None:
    assert list(parse(record(START) + json.dumps(STEP).encode()[:-5] + b"\n" + record(START))) == [START, START]


def test_nothing_is_shown_before_the_run_has_started() -> None:
    screen = Screen()
    RunView(screen).feed(b"")
    assert screen.shown == []


def test_a_resumed_run_is_shown_from_where_it_goes_on() -> None:
    screen = Screen()
    view = RunView(screen)
    view.feed(record(START))
    assert screen.shown == [("train", 320), 128]
    more = record(STEP, EPOCH, STEP)
    for place in range(len(more)):
        view.feed(more[place : place + 1])
    assert screen.shown[2:] == [192, 192]
    assert screen.figures == {
        "epoch": "1",
        "loss": "0.500",
        "split": "20+12",
        "of ideal": "85%",
        "balanced accuracy": "75.0%",
    }
    assert view.offset == len(record(START)) + len(more)
