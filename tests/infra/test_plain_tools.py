"""The permissions that the page about plain tools lists, beside ShoalUser."""

import json

from shoal_local_aws.permissions.record import Check

from infra import policies
from tests.infra.handled import statements
from tests.infra.replay import is_allowed
from tests.pages import ROOT, Page

PERSON = "arn:aws:iam::000000000000:user/person"
SHELL, STOP = (f"arn:aws:ssm:us-east-1::document/AWS-{name}" for name in ("RunShellScript", "StopEC2Instance"))
NODE = "arn:aws:ec2:us-east-1:000000000000:instance/i-0123456789abcdef0"


def test_the_listed_statements_allow_commands_on_nodes_of_deployments_only():
    (block,) = Page(ROOT / "docs" / "how-to" / "use-plain-tools.md").blocks("json")
    listed = statements({"Version": "2012-10-17", "Statement": json.loads(block)})
    user = statements(policies.document(policies.USER))

    def may(action, resource, policies, **tags):
        context = {f"ssm:resourceTag/shoal:{name}": value for name, value in tags.items()}
        return is_allowed(Check(PERSON, f"ssm:{action}", resource, "allowed", context=context), policies)

    both = [user, listed]
    assert may("SendCommand", SHELL, both)
    assert may("SendCommand", NODE, both, deployment="plain")
    assert may("ListCommandInvocations", "*", both)
    assert not may("SendCommand", STOP, both)
    assert not may("SendCommand", NODE, both)
    assert not may("SendCommand", SHELL, [user])
