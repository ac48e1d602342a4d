"""Operations on a stack while another one is under way."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.faults.kinds import DeleteFails
from tests.local_aws.resources import TOPIC, cluster
from tests.local_aws.waiting import until


class Slow:
    """A stack whose cluster stays in its boot until the test lets it continue."""

    def __init__(self, stacks, client, upload, name: str) -> None:
        self.name, self.client, self._upload = name, client, upload
        self.stacks, self.cloudformation = stacks, client("cloudformation")
        script = upload("slow", f"{name}.sh", f"until aws s3 ls s3://slow/{name}.go; do sleep 0.2; done")
        action = {"Name": "wait", "ScriptBootstrapAction": {"Path": script}}
        self.cluster = {**cluster(Name=name, BootstrapActions=[action]), "DependsOn": "First"}
        self.resources = {"First": TOPIC, "Cluster": self.cluster, "Last": {**TOPIC, "DependsOn": "Cluster"}}

    def begin(self) -> str:
        """Begin to create it; returns its id once the cluster is under way."""
        template = json.dumps({"Resources": self.resources})
        identifier = self.cloudformation.create_stack(StackName=self.name, TemplateBody=template)["StackId"]
        until(lambda: self.clusters("BOOTSTRAPPING"))
        return str(identifier)

    def go_on(self) -> None:
        self._upload("slow", f"{self.name}.go", "")

    def clusters(self, *states: str) -> list[str]:
        found = self.client("emr").list_clusters(ClusterStates=list(states))["Clusters"]
        return [cluster["Id"] for cluster in found if cluster["Name"] == self.name]

    def status(self, identifier: str) -> str:
        return str(self.cloudformation.describe_stacks(StackName=identifier)["Stacks"][0]["StackStatus"])

    def until(self, identifier: str, *statuses: str) -> list[str]:
        """Every status of the stack until it has one of these."""
        seen: list[str] = []

        def settled() -> bool:
            seen.append(self.status(identifier))
            return seen[-1] in statuses

        until(settled)
        return seen


@pytest.fixture
def slow(stacks, client, upload):
    return lambda name: Slow(stacks, client, upload, name)


def test_a_stack_that_is_being_made_can_be_deleted_and_nothing_stays(slow, client):
    stack = slow("unmade")
    identifier = stack.begin()
    stack.cloudformation.delete_stack(StackName="unmade")
    stack.go_on()
    seen = stack.until(identifier, "DELETE_COMPLETE", "DELETE_FAILED", "CREATE_COMPLETE")
    assert set(seen) <= {"CREATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"}
    assert stack.clusters("STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING") == []
    assert client("sns").list_topics()["Topics"] == []
    events = stack.cloudformation.describe_stack_events(StackName=identifier)["StackEvents"]
    last = [event["ResourceStatus"] for event in events if event["LogicalResourceId"] == "Last"]
    assert "CREATE_COMPLETE" not in last


def test_a_stack_tells_of_a_cluster_that_is_being_made_and_is_meanwhile_neither_updated_nor_deleted(slow, client):
    stack = slow("changed")
    identifier = stack.begin()

    def told() -> dict[str, tuple[str, ...]]:
        found = stack.cloudformation.describe_stack_resources(StackName="changed")["StackResources"]
        return {each["LogicalResourceId"]: (each["ResourceStatus"], each["PhysicalResourceId"]) for each in found}

    until(lambda: "Cluster" in told())  # a moment after EMR has it
    assert told()["Cluster"] == ("CREATE_IN_PROGRESS", *stack.clusters("BOOTSTRAPPING"))
    body = json.dumps({"Resources": {"First": TOPIC}})
    with pytest.raises(ClientError, match="is in CREATE_IN_PROGRESS state and can not be updated"):
        stack.cloudformation.update_stack(StackName="changed", TemplateBody=body)
    with pytest.raises(ClientError, match="is in CREATE_IN_PROGRESS state and can not be updated"):
        stack.cloudformation.create_change_set(StackName="changed", ChangeSetName="changes", TemplateBody=body)
    stack.go_on()
    stack.until(identifier, "CREATE_COMPLETE")
    client("s3").delete_object(Bucket="slow", Key="changed.go")
    properties = {**stack.cluster["Properties"], "ServiceRole": "other"}
    resources: dict[str, Any] = {**stack.resources, "Cluster": {**stack.cluster, "Properties": properties}}
    stack.cloudformation.update_stack(StackName="changed", TemplateBody=json.dumps({"Resources": resources}))
    until(lambda: stack.clusters("BOOTSTRAPPING"))
    with pytest.raises(ClientError, match="cannot be deleted while in status UPDATE_IN_PROGRESS"):
        stack.cloudformation.delete_stack(StackName="changed")
    stack.go_on()
    stack.until(identifier, "UPDATE_COMPLETE")
    assert stack.stacks.delete("changed") == "DELETE_COMPLETE"


def test_deleting_twice_deletes_once(stacks, client):
    cloudformation = client("cloudformation")
    stacks.create("twice", {"First": TOPIC})
    identifier = cloudformation.describe_stacks(StackName="twice")["Stacks"][0]["StackId"]
    for _ in range(3):
        cloudformation.delete_stack(StackName="twice")
    events = cloudformation.describe_stack_events(StackName=identifier)["StackEvents"]
    began = [event for event in events if event["ResourceStatus"] == "DELETE_IN_PROGRESS"]
    assert [event["LogicalResourceId"] for event in began].count("First") == 1


def test_a_stack_that_could_not_be_deleted_is_not_updated(stacks, aws):
    stacks.create("stuck", {"First": TOPIC})
    with aws.faults.during(DeleteFails(logical_id="First")):
        assert stacks.delete("stuck") == "DELETE_FAILED"
    with pytest.raises(ClientError, match="is in DELETE_FAILED state and can not be updated"):
        stacks.update("stuck", {"First": TOPIC, "Second": TOPIC})
    assert stacks.delete("stuck") == "DELETE_COMPLETE"
