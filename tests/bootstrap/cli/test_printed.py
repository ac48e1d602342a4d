"""Complete output of commands, and the files that they leave. `printed/*.yaml` has command lines with their output.

A group lists files that exist before its commands (`files`), generated files (`made`, by the functions in MADE), and
results of replaced functions (`answers`, by ANSWERS). A row may add to each. `{here}` is the folder of a command;
`{known}` and `{topics}` are models of known_model.py. Numbers in JSON have nine digits.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.bootstrap.cli.printing import EMPTY, GROUPS, printed, together

ROWS = [
    pytest.param(together(EMPTY | group, row, 3), id=f"{about}: {row['command']}")
    for about, group in GROUPS
    for row in group["rows"]
]


@pytest.mark.parametrize("row", ROWS)
def test_a_command_prints_exactly_this(
    row: dict[str, Any], models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert printed(row, {**models, "here": tmp_path}, monkeypatch) == {
        "status": row.get("status", 0),
        "out": row.get("json", row.get("out", "")),
        "err": row.get("err", ""),
        "left": row.get("left", []),
    }
