"""Describe calls with filters that ministack ignores."""

from shoal_local_aws.nodes import filters
from shoal_local_aws.seams import ec2

NODE = "i-0a1b2c3d4e5f60718"


class Wrapped:
    """Collects the wrappers of operations without installing them in ministack."""

    def __init__(self):
        self.operations = {}

    def wrap(self, name, around):
        self.operations[name] = around(OPERATIONS.now(name))


OPERATIONS = ec2.operations


def test_describing_an_ended_instance_that_ministack_forgets_is_not_an_error(monkeypatch):
    wrapped, forget = Wrapped(), ec2.forget_ended.now
    monkeypatch.setattr(ec2, "operations", wrapped)
    ec2.instances[NODE] = {"InstanceId": NODE, "State": {"Name": "terminated"}, "_terminated_at": 0}
    try:
        filters.install()
        asked = {"Filter.1.Name": ["instance-id"], "Filter.1.Value.1": [NODE]}
        status, _headers, answer = wrapped.operations["DescribeInstances"](asked)
    finally:
        ec2.forget_ended.put(forget)
        ec2.instances.pop(NODE, None)
    assert (status, NODE in answer.decode()) == (200, False)
