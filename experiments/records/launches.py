"""Reads and writes launch.json in a run's folder: facts that only the commands that launched the run know."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from common.files import indented_json, write_whole
from trainer.output.run_files import LAUNCH, read_json


def write_launch(folder: Path, *, continues: bool, **content: Any) -> None:
    """Write launch.json with facts that only the launching command knows.

    `content` has the time at which the launch `began` (seconds since 1970), the `seconds` of the whole launch, and its
    `predicted` time and cost. For a deployment, it also has the nodes, the `stages` (name, seconds, dollars) and the
    cost. If `continues` is true, the file keeps the content of earlier launches under `earlier`.
    """
    if continues and (before := read_json(folder / LAUNCH)):
        earlier = before.pop("earlier", [])
        content["earlier"] = [*(earlier if isinstance(earlier, list) else ()), before]
    with suppress(OSError):  # do not fail, because a report shows missing values as unknown
        write_whole(folder / LAUNCH, indented_json(content))


def read_launches(folder: Path) -> tuple[Mapping[str, Any], ...]:
    """Return the facts that each command that launched the run wrote to launch.json, the latest last. Commands that
    were killed are missing."""
    latest = read_json(folder / LAUNCH)
    if not latest:
        return ()
    earlier = latest.get("earlier")
    return (*(each for each in (earlier if isinstance(earlier, list) else ()) if isinstance(each, dict)), latest)
