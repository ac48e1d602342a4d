"""Wrong command lines and wrong input, listed in `wrong_use.yaml`, end in a message and leave nothing."""

import io
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from bootstrap.cli.main import main
from tests.bootstrap.cli.command import content_of, leave_out_progress
from tests.bootstrap.cli.known_model import save, save_topics
from tests.messages import Messages
from trainer.command_line import parse_arguments

GROUPS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("wrong_use.yaml").read_text())
ROWS = [{**row, "files": group.get("files", {}) | row.get("files", {})} for group in GROUPS for row in group["rows"]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return two trained models, by the names that commands have for them."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("known", "topics")}
    save(folders["known"])
    save_topics(folders["topics"])
    return folders


def files_below(folder: Path) -> list[Path]:
    """Return the visible files, without intermediate files from which the same command would continue."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and ".shoal-work-" not in str(path))


def run(command: list[str]) -> int:
    """Return the exit status of a command, run in this process."""
    match command:
        case ["shoal", *arguments]:
            return main(arguments)
        case ["python", "-m", "trainer", *arguments]:
            parse_arguments(arguments)
            return 0
        case ["python", "-m", module, *arguments]:
            return int(import_module(module).main(arguments) or 0)
    raise ValueError(command)


@pytest.mark.parametrize("row", ROWS, ids=[row.get("case", row["command"]) for row in ROWS])
def test_wrong_use_gives_a_message_and_leaves_nothing(
    row: dict[str, Any],
    models: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    messages: Messages,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    leave_out_progress(monkeypatch)
    for name, file in row["files"].items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content_of(file))
    before = files_below(tmp_path)
    try:
        status = run(shlex.split(row["command"].format(**models)))
    except SystemExit as ended:
        status = int(str(ended.code))
    printed = capsys.readouterr()
    message = printed.err.rstrip()
    if message.lower().startswith("usage:"):
        *_, message = message.splitlines()
    messages.check(message.partition(" (choose from ")[0])  # newer versions of Python do not quote choices
    assert status == row.get("status", 2)
    assert (printed.out, "Traceback" in printed.err) == ("", False)
    assert files_below(tmp_path) == before
