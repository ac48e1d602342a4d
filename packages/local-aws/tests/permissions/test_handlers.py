"""The permissions in `handlers.yaml` agree with the schemas of the resource types."""

import pytest
from shoal_local_aws.aws import REGION
from shoal_local_aws.permissions import handlers

OPERATIONS = ("create", "read", "update", "delete")
WITHOUT_HANDLERS = {"AWS::EMR::Cluster", "Custom"}


@pytest.mark.parametrize("kind", sorted(handlers.handlers()))
def test_handler_permissions_match_their_schemas(kind):
    listed, found = handlers.handlers()[kind], schema_of(kind)
    assert bool(found) is (kind not in WITHOUT_HANDLERS)
    for operation in OPERATIONS if found else ():
        own = set(listed.get(operation, ()))
        reads = set(listed.get("read", ())) if operation in ("create", "update") else set()
        asked = set(found.get(operation, {}).get("permissions", ()))
        assert own <= asked
        missing = asked - own - reads
        assert not [action for action in missing if handlers.READS.match(action)]


def schema_of(kind):
    """Return the permissions of each handler in a type's schema, which may have no handlers."""
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

    if kind == "Custom":
        return {}
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(region=REGION, resource_type=kind).schema
    return dict(schema.get("handlers") or {})
