"""Fixtures of the tests of the embedded AWS: one emulator per module, its clients, and stacks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from shoal_local_aws.aws import REGION, EmbeddedAws

from tests.aws import keys_of
from tests.waiting import until

Client = Callable[[str], Any]


class Stacks:
    """Stacks by CloudFormation's own interface. Each call waits for the stack's final status."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.cloudformation = client("cloudformation")

    def create(self, name: str, resources: dict[str, Any], **more: Any) -> str:
        """Create a stack of resources; returns the status it ends in."""
        template = json.dumps({"Resources": resources, "Outputs": more.pop("outputs", {})})
        self.cloudformation.create_stack(StackName=name, TemplateBody=template, Capabilities=["CAPABILITY_IAM"], **more)
        return self._settled(name)

    def update(self, name: str, resources: dict[str, Any], **more: Any) -> str:
        template = json.dumps({"Resources": resources})
        self.cloudformation.update_stack(StackName=name, TemplateBody=template, Capabilities=["CAPABILITY_IAM"], **more)
        return self._settled(name)

    def delete(self, name: str, **more: Any) -> str:
        identifier = self.cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        self.cloudformation.delete_stack(StackName=name, **more)
        return self._settled(identifier)

    def _settled(self, name: str) -> str:
        def status() -> str | None:
            found = self.cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"]
            return None if found.endswith("IN_PROGRESS") else found

        return str(until(status))

    def physical(self, name: str, logical: str) -> str:
        detail = self.cloudformation.describe_stack_resource(StackName=name, LogicalResourceId=logical)
        return str(detail["StackResourceDetail"]["PhysicalResourceId"])

    def reasons(self, name: str) -> str:
        events = self.cloudformation.describe_stack_events(StackName=name)["StackEvents"]
        return "\n".join(event.get("ResourceStatusReason", "") for event in events)


@pytest.fixture(scope="module")
def client(aws: EmbeddedAws) -> Client:
    session = boto3.Session(**keys_of(aws), region_name=REGION)
    return lambda service: session.client(service, endpoint_url=aws.endpoint)


@pytest.fixture(scope="module")
def stacks(client: Client) -> Stacks:
    return Stacks(client)


@pytest.fixture(scope="module")
def upload(client: Client) -> Callable[[str, str, bytes | str], str]:
    """Puts an object and returns its address; creates the bucket when there is none."""

    def put(bucket: str, key: str, body: bytes | str) -> str:
        s3 = client("s3")
        s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key=key, Body=body)
        return f"s3://{bucket}/{key}"

    return put


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()
