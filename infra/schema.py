"""Builds the JSON schema by which an editor completes and checks a topology's file.

`python -m infra.schema` prints it. `topologies/schema.json` is a copy; the first line of each topology refers to it.
The schema does not contain rules that need code; `shoal plan` checks those.
"""

import json
from typing import Any

from infra import catalog
from infra.topology import Topology


def schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a file of `topologies/`."""
    found = Topology.model_json_schema()
    del found["properties"]["name"]  # a topology is named by its file
    found["required"].remove("name")
    types = list(catalog.catalog().types.values())
    emr = [each.name for each in types if each.runs_emr]
    gpu = [each.name for each in types if each.gpu]
    for part, names in (("Primary", emr), ("WorkersSpec", emr), ("NodeGroup", gpu)):
        found["$defs"][part]["properties"]["instance_type"]["enum"] = names
    # The model derives the other fields from the instance type.
    found["$defs"]["NodeGroup"]["required"] = ["instance_type", "count"]
    return found


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1))  # noqa: T201
