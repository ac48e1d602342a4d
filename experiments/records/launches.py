"""launch.json beside a run's record: what only the commands that launched the run know."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from common.files import indented_json, write_whole
from trainer.output.run_files import LAUNCH, read_json


def write_launch(folder: Path, *, goes_on: bool, **content: Any) -> None:
    """Write beside a run's record what only the command that launched it knows: when it `began` (seconds since 1970),
    `seconds` of the whole launch, what was `predicted` of it, and of a deployment the nodes, the `stages` (name,
    seconds, dollars) and the cost; of a run that `goes_on`, also that of its `earlier` launches."""
    if goes_on and (before := read_json(folder / LAUNCH)):
        earlier = before.pop("earlier", [])
        content["earlier"] = [*(earlier if isinstance(earlier, list) else ()), before]
    with suppress(OSError):  # a report says of what is missing that it is not known
        write_whole(folder / LAUNCH, indented_json(content))


def read_launches(folder: Path) -> tuple[Mapping[str, Any], ...]:
    """What each of the commands that ran it knew, the latest one last; those that were killed are not there."""
    latest = read_json(folder / LAUNCH)
    if not latest:
        return ()
    earlier = latest.get("earlier")
    return (*(each for each in (earlier if isinstance(earlier, list) else ()) if isinstance(each, dict)), latest)
