"""What commands print, whole, and leave: `printed/*.yaml` lists command lines, with output as text or as JSON.

A group has the files that its commands find, what is made beside them (`made`, by the functions of MADE), and the
answers of functions below the commands (`answers`, by those of ANSWERS); a row may have more of each. `{here}` is the
folder of a command, `{known}` and `{topics}` are models of known_model.py. Numbers in JSON have nine digits.
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
def test_a_command_prints_this_and_nothing_else(
    row: dict[str, Any], models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert printed(row, {**models, "here": tmp_path}, monkeypatch) == {
        "status": row.get("status", 0),
        "out": row.get("json", row.get("out", "")),
        "err": row.get("err", ""),
        "left": row.get("left", []),
    }
