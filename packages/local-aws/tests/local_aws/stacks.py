"""Stacks for tests, through CloudFormation's API."""

import json
from collections.abc import Callable
from typing import Any

from tests.local_aws.waiting import until

Client = Callable[[str], Any]


class Stacks:
    """Creates and deletes stacks through CloudFormation's API. Each call waits for the final status of the stack."""

    def __init__(self, client):
        self.client = client
        self.cloudformation = client("cloudformation")

    def create(self, name, resources, **more):
        template = json.dumps({"Resources": resources, "Outputs": more.pop("outputs", {})})
        self.cloudformation.create_stack(StackName=name, TemplateBody=template, Capabilities=["CAPABILITY_IAM"], **more)
        return self._settled(name)

    def update(self, name, resources, **more):
        template = json.dumps({"Resources": resources})
        self.cloudformation.update_stack(StackName=name, TemplateBody=template, Capabilities=["CAPABILITY_IAM"], **more)
        return self._settled(name)

    def delete(self, name, **more):
        identifier = self.cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        self.cloudformation.delete_stack(StackName=name, **more)
        return self._settled(identifier)

    def _settled(self, name):
        def status():
            found = self.cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"]
            return None if found.endswith("IN_PROGRESS") else found

        return str(until(status))

    def physical(self, name, logical):
        detail = self.cloudformation.describe_stack_resource(StackName=name, LogicalResourceId=logical)
        return str(detail["StackResourceDetail"]["PhysicalResourceId"])

    def reasons(self, name):
        events = self.cloudformation.describe_stack_events(StackName=name)["StackEvents"]
        return "\n".join(event.get("ResourceStatusReason", "") for event in events)

    def reason(self, name, logical):
        """Return the reason of the first failure of a resource."""
        events = reversed(self.cloudformation.describe_stack_events(StackName=name)["StackEvents"])
        failed = (
            each for each in events if (each["LogicalResourceId"], each["ResourceStatus"][-6:]) == (logical, "FAILED")
        )
        return str(next(failed)["ResourceStatusReason"])
