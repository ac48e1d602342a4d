"""Describe calls with filters that ministack ignores."""

from types import SimpleNamespace

from shoal_local_aws.nodes import filters
from shoal_local_aws.seams import ec2

NODE = "i-0a1b2c3d4e5f60718"


def test_describing_an_ended_instance_that_ministack_forgets_is_not_an_error(monkeypatch):
    operations, installed, forget = ec2.operations, {}, ec2.forget_ended.now

    def wrap(name, around):
        """Keep the wrapped operation, without installing it in ministack."""
        installed[name] = around(operations.now(name))

    monkeypatch.setattr(ec2, "operations", SimpleNamespace(wrap=wrap))
    ec2.instances[NODE] = {"InstanceId": NODE, "State": {"Name": "terminated"}, "_terminated_at": 0}
    try:
        filters.install()
        asked = {"Filter.1.Name": ["instance-id"], "Filter.1.Value.1": [NODE]}
        status, _headers, answer = installed["DescribeInstances"](asked)
    finally:
        ec2.forget_ended.put(forget)
        ec2.instances.pop(NODE, None)
    assert (status, NODE in answer.decode()) == (200, False)
