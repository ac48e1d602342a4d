"""Wrong command lines and wrong input, listed in `wrong_use.yaml`, end in a message and leave nothing."""

import io
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from shoal.cli.main import main
from tests.shoal.cli.command import content_of, leave_out_progress

GROUPS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("wrong_use.yaml").read_text())
ROWS = [{**row, "files": group.get("files", {}) | row.get("files", {})} for group in GROUPS for row in group["rows"]]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    from tests.shoal.cli.known_model import save_both

    return save_both(tmp_path_factory)


def files_below(folder: Path) -> dict[Path, bytes]:
    """Return the visible files, without intermediate files from which the same command would continue."""
    paths = (path for path in folder.rglob("*") if path.is_file() and ".shoal-work-" not in str(path))
    return {path: path.read_bytes() for path in paths}


def run(command: list[str]) -> int:
    """Return the exit status of a command, run in this process."""
    match command:
        case ["shoal", *arguments]:
            return main(arguments)
        case ["python", "-m", "trainer", *arguments]:
            import_module("trainer.command_line").parse_arguments(arguments)
            return 0
        case ["python", "-m", module, *arguments]:
            return int(import_module(module).main(arguments) or 0)
    raise ValueError(command)


@pytest.mark.parametrize("row", ROWS, ids=[row.get("case", row["command"]) for row in ROWS])
def test_wrong_use_gives_a_message_and_leaves_nothing(row, models, tmp_path, monkeypatch, capsys, messages) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(row.get("stdin", b""))))
    leave_out_progress(monkeypatch)
    for name, file in row["files"].items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
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
