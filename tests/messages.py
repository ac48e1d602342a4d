"""pytest plugin with the fixture `messages`: the wording of messages stands in golden files, one for each room.

    def test_a_missing_file_is_refused(messages):
        with messages.raises(DataError) as refusal:
            read("absent.h5")
        assert "absent.h5" in str(refusal.value)

compares the error's text with the entry of this test in messages.json. `make messages` writes these files again. So a
sentence is changed in the code alone, and one diff shows the change. `pytest --write-messages PATH...` writes only the
entries of some tests. In an entry, `TMP` stands for the folders of a test, `SHOAL` for the checkout, `PORT` for a port.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NAME = "messages.json"
Entry = list[str | list[str]]
"""The messages of a test, in their order. A message with several lines is a list of lines."""


class Messages:
    """Messages of one test, which must equal the stored ones.

    Args:
        stored: Messages of this test in the golden file. None if the messages are written, and not compared.
        folder: Folder with the temporary folders of all tests.
    """

    def __init__(self, stored: Entry | None, folder: Path) -> None:
        self.seen: Entry = []
        self._stored = stored
        self._hidden = [
            (re.compile(rf"{re.escape(str(folder))}(/[\w.,+-]+)?"), "TMP"),
            (re.compile(re.escape(str(ROOT))), "SHOAL"),
            (re.compile(r"(127\.0\.0\.1|localhost):\d+"), r"\1:PORT"),
        ]

    def hide(self, varying: object, name: str) -> None:
        """Write a name in place of a text that differs from run to run."""
        pattern = re.escape(str(varying))
        if isinstance(varying, int):  # not a part of another number or of a name, such as the folder of this run
            pattern = rf"(?<![\w-]){pattern}(?!\w)"
        self._hidden.insert(0, (re.compile(pattern), name))

    def check(self, message: object) -> None:
        """Compare a message with the next stored one."""
        text = str(message)
        for pattern, name in self._hidden:
            text = pattern.sub(name, text)
        self.seen.append(text.split("\n") if "\n" in text else text)
        if self._stored is not None:
            position = len(self.seen) - 1
            expected = (
                self._stored[position] if position < len(self._stored) else "no entry: run pytest --write-messages"
            )
            assert self.seen[-1] == expected

    @contextmanager
    def raises(
        self, kind: type[BaseException] | tuple[type[BaseException], ...]
    ) -> Iterator[pytest.ExceptionInfo[Any]]:
        """Expect an error of this kind with the stored text."""
        with pytest.raises(kind) as caught:
            yield caught
        self.check(caught.value)


def golden_file(test_file: str) -> tuple[Path, str]:
    """Return the golden file of a test file, given relative to the checkout, and the test file's key there."""
    *folders, _ = Path(test_file).parts
    depth = folders.index("tests") + 1
    room = Path(*folders[: depth + (folders[0] == "tests")])
    return ROOT / room / NAME, Path(test_file).relative_to(room).as_posix()


@cache
def read(path: Path) -> dict[str, dict[str, Entry]]:
    """Return a golden file's entries by test file and test."""
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


@pytest.fixture
def messages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Messages]:
    """Messages of a test, compared with the golden file of its room."""
    file, _, test = request.node.nodeid.partition("::")
    writing = request.config.getoption("write_messages")
    path, key = golden_file(file)
    stored = None if writing else read(path).get(key, {}).get(test, [])
    own = Messages(stored, tmp_path_factory.getbasetemp())
    yield own
    if stored is None:
        request.config.stash[_WRITTEN].append((file, test, own.seen))
    elif request.node.nodeid in request.config.stash[_PASSED]:  # neither skipped nor failed
        assert len(own.seen) == len(stored), "the golden file has more messages: run pytest --write-messages"


_WRITTEN = pytest.StashKey[list[tuple[str, str, Entry]]]()
_COLLECTED = pytest.StashKey[set[str]]()
_PASSED = pytest.StashKey[set[str]]()


class _Outcomes:
    """Collects the tests that pass. The entries of a failed test would be incomplete."""

    def __init__(self, passed: set[str]) -> None:
        self._passed = passed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-messages", action="store_true", help="write the messages that tests expect, see tests/messages.py"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_WRITTEN] = []
    config.stash[_COLLECTED] = set()
    config.stash[_PASSED] = set()
    config.pluginmanager.register(_Outcomes(config.stash[_PASSED]))


def pytest_itemcollected(item: pytest.Item) -> None:
    item.config.stash[_COLLECTED].add(item.nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over the messages of a worker of a parallel run."""
    written, collected = getattr(node, "workeroutput", {}).get("messages", ([], []))
    node.config.stash[_WRITTEN].extend(map(tuple, written))
    node.config.stash[_COLLECTED].update(collected)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    if not config.getoption("write_messages"):
        return
    if hasattr(config, "workeroutput"):
        config.workeroutput["messages"] = (config.stash[_WRITTEN], sorted(config.stash[_COLLECTED]))
    else:
        whole = not any("::" in argument for argument in config.args)
        seen = {f"{file}::{test}": entry for file, test, entry in config.stash[_WRITTEN]}
        passed = {node: seen.get(node, []) for node in config.stash[_PASSED]}
        write(passed, config.stash[_COLLECTED], remove=whole)


def write(passed: dict[str, Entry], collected: set[str], *, remove: bool) -> None:
    """Write the messages of passed tests into their golden files, and `remove` the entries of tests that no longer
    exist."""
    files = {node.partition("::")[0] for node in collected}
    golden_files = {golden_file(file)[0]: read(golden_file(file)[0]) for file in files}
    for node, messages in passed.items():
        file, _, test = node.partition("::")
        path, key = golden_file(file)
        golden_files[path].setdefault(key, {})[test] = messages
    for path, entries in golden_files.items():
        content = {}
        for key, tests in sorted(entries.items()):
            file = (path.parent / key).relative_to(ROOT).as_posix()
            gone = remove and (file in files or not (ROOT / file).exists())
            kept = {
                test: messages
                for test, messages in sorted(tests.items())
                if messages and (not gone or f"{file}::{test}" in collected)
            }
            content |= {key: kept} if kept else {}
        if content:
            path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
        else:
            path.unlink(missing_ok=True)
