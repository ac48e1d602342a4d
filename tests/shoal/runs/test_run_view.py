import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from bootstrap.node.folder import Folder
from common.progress import ProgressReporter, reporting
from corpus.stream.progress import Status
from shoal.runs import run_view
from shoal.runs.run_view import RecordView, RunView


class Screen(ProgressReporter):
    """Reporter that records its calls."""

    def __init__(self):
        self.shown = []
        self.figures = {}

    def stage(self, name, total=0, unit=None):
        self.shown.append([name, total])

    def begin_at(self, done):
        self.shown.append(["from", done])

    def at(self, done):
        self.shown.append(done)

    def pace(self, rate):
        self.rate = rate

    def say(self, **figures):
        self.figures = figures

    def note(self, text):
        self.shown.append(text)

    def leave(self):
        self.shown.append("left")


class Interrupted(Screen):
    """Reporter that raises KeyboardInterrupt at the first step."""

    def at(self, done):
        if not self.shown.count(done):
            super().at(done)
            raise KeyboardInterrupt


class ViewOn(RunView):
    """View that reports to a screen."""

    def __init__(self, screen, **more):
        super().__init__(**more)
        self._screen = screen

    def feed(self, more):
        with reporting(self._screen):
            super().feed(more)


TABLE = yaml.safe_load(Path(__file__).with_name("run_view.yaml").read_text())
START, STEP, EPOCH = (TABLE["lines"][name] for name in ("start", "step", "epoch"))


def record(*lines):
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


HALF = json.dumps(STEP).encode()[:-5]


@pytest.mark.parametrize("line", [b"\xff", b"[]", b"7", b"{}", b'"kind"', b"[" * 100_000, b'{"kind": "step"}', HALF])
def test_an_invalid_line_is_ignored(line):
    screen = Screen()
    ViewOn(screen).feed(record(START) + line + b"\n" + record(STEP))
    assert screen.shown == [["train", 320], ["from", 128], 192]


def line(given):
    """Return a line of the table, given by its name or by its name and other fields."""
    (name, more), *_ = given.items() if isinstance(given, dict) else [(given, {})]
    return {**TABLE["lines"][name], **more}


@pytest.mark.parametrize("row", TABLE["views"], ids=lambda row: row["about"])
def test_the_view_of_a_record(row, monkeypatch):
    screen, now, dollars = Screen(), [float(row["fed"][0]["at"])], iter(row.get("spent", ()))
    monkeypatch.setattr(time, "time", lambda: now[0])
    more = {"spent": lambda: next(dollars)} if "spent" in row else {}
    more |= {"read": lambda: Status(words=row["read"])} if "read" in row else {}
    view = ViewOn(screen, **more)
    for fed in row["fed"]:
        now[0] = fed["at"]
        screen.shown = []
        view.feed(record(*map(line, fed.get("lines", ()))))
        assert screen.shown == fed.get("shown", [])
        assert [*screen.figures.items()] == [*fed.get("figures", {}).items()]


def test_a_record_in_pieces_is_shown_like_a_whole_one():
    whole, pieces = Screen(), Screen()
    content = record(START, STEP, EPOCH, STEP)
    ViewOn(whole).feed(content)
    view = ViewOn(pieces)
    for place in range(len(content)):
        view.feed(content[place : place + 1])
    assert (pieces.shown, pieces.figures) == (whole.shown, whole.figures)
    assert (pieces.rate, view.offset) == (340.0, len(content))


def test_a_record_is_read_in_pieces_and_an_endless_line_is_discarded(monkeypatch):
    content, asked, whole, pieces = record(START, STEP, EPOCH, STEP), [], Screen(), Screen()
    ViewOn(whole).feed(content)

    def read(_, offset, most):
        asked.append((offset, most))
        return content[offset : offset + most]

    most = max(map(len, content.splitlines())) + 1
    monkeypatch.setattr(run_view, "PIECE_BYTES", most)
    view = ViewOn(pieces)
    store = SimpleNamespace(size=lambda _: len(content), read_from=read)
    remote = RecordView(view, store, "record.jsonl", before=None)
    remote.update()
    assert (pieces.shown, pieces.figures) == (whole.shown, whole.figures)
    assert asked == [(place, most) for place in range(0, len(content), most)]
    monkeypatch.setattr(run_view, "PIECE_BYTES", 50)
    view.feed(b"x" * 1_000)
    view.feed(b"\n" + record(EPOCH))
    assert view.offset == len(content) + 1_001 + len(record(EPOCH))
    assert len(view._rest) <= 50


def test_a_restarted_record_is_read_from_its_start():
    screen = Screen()
    view = ViewOn(screen)
    view.feed(record(START, STEP) + b'{"kind": "st')
    view.restart()
    assert view.offset == 0
    view.feed(record({**START, "from_step": 0}))
    assert screen.shown[-1] == ["from", 0]


def test_the_record_of_a_resumed_run_is_shown_once_it_changes(tmp_path):
    screen, path, store = Screen(), tmp_path / "record.jsonl", Folder(tmp_path)
    path.write_bytes(record(START, STEP))
    view = RecordView(ViewOn(screen), store, path.name, before=store.size(path.name))
    view.update()
    assert screen.shown == []
    path.write_bytes(record(START, STEP, STEP))
    view.update()
    assert screen.shown == [["train", 320], ["from", 128], 192, 192]
    path.write_bytes(record({**START, "from_step": 0}))  # the ranks restarted before their first checkpoint
    view.update()
    assert screen.shown[-1] == ["from", 0]


def test_an_interrupt_loses_no_line():
    screen = Interrupted()
    view = ViewOn(screen)
    with pytest.raises(KeyboardInterrupt):
        view.feed(record(START, STEP, {**STEP, "step": 7}))
    with pytest.raises(KeyboardInterrupt):
        view.feed(b"")
    assert screen.shown[-2:] == [6 * 32, 7 * 32]
