"""What a GPU node reports of its first boot, as it is read: `state`, the end of its `log`, and its `python`.

The easy mistake is to believe that a node wrote it as its boot script does: whoever is root there may write anything.
"""

import json

UNREADABLE = "unreadable"
_SHOWN = 500
"""So many signs of what cannot be read are told."""


def parse(text: str) -> dict[str, str]:
    """The report's fields; of one that cannot be read the state is UNREADABLE, and the log what it says instead."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # so deep that the parser gives up
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return {"state": UNREADABLE, "log": f"its report cannot be read: {text[:_SHOWN]}"}
    return {"state": UNREADABLE, "log": "", **found}
