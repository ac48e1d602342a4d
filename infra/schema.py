"""Builds the JSON schema that editors use to complete and check a topology.

`python -m infra.schema` prints the schema. `topologies/schema.json` is a copy, to which the first line of each topology
refers. The schema does not contain rules that need code. `shoal plan` checks those rules.
"""

import json
from typing import Any

from infra import catalog
from infra.parts import can_read
from infra.topology import Topology

_ON_NODE = {
    "type": "object",
    "properties": {"on": {"const": "node"}},
    "required": ["on"],
    "additionalProperties": False,
}


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) for the topologies in `topologies/`."""
    content = Topology.model_json_schema()
    del content["properties"]["name"]  # the name of a topology is its file name, not a field
    content["required"].remove("name")
    content["properties"]["preprocessing"]["anyOf"].insert(1, _ON_NODE)
    types = list(catalog.catalog().types.values())
    emr = [each.name for each in types if each.runs_emr]
    for part in ("Primary", "WorkersSpec"):
        content["$defs"][part]["properties"]["instance_type"]["enum"] = emr
    gpu = {"enum": [each.name for each in types if each.gpu]}
    read = {"enum": [each.name for each in types if can_read(each)]}
    group = content["$defs"]["NodeGroup"]
    # The model derives all other fields from the instance type, so they are not required.
    group["required"] = ["count"]
    group["oneOf"] = [{"required": ["instance_type"]}, {"required": ["instance_types"]}]
    del group["properties"]["gpus"]["default"]
    group["if"] = {"properties": {"role": {"const": "read"}}, "required": ["role"]}
    group["then"] = {"properties": {"instance_type": read, "instance_types": {"items": read}, "gpus": False}}
    group["else"] = {"properties": {"instance_type": gpu, "instance_types": {"items": gpu}}}
    return content


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1))  # noqa: T201
