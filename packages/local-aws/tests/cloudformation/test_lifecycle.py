import json

import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.faults.kinds import DeleteFails
from tests.local_aws.resources import TOPIC, cluster
from tests.local_aws.waiting import until


class SlowStack:
    """Stack with a cluster that waits in its bootstrap action until the test continues it."""

    def __init__(self, stacks, client, upload, name):
        self.name, self.client, self._upload = name, client, upload
        self.stacks, self.cloudformation = stacks, client("cloudformation")
        script = upload("slow", f"{name}.sh", f"until aws s3 ls s3://slow/{name}.go; do sleep 0.2; done")
        action = {"Name": "wait", "ScriptBootstrapAction": {"Path": script}}
        self.cluster = {**cluster(Name=name, BootstrapActions=[action]), "DependsOn": "First"}
        self.resources = {"First": TOPIC, "Cluster": self.cluster, "Last": {**TOPIC, "DependsOn": "Cluster"}}

    def start(self):
        """Start the creation, wait until the cluster boots, and return the stack's id."""
        template = json.dumps({"Resources": self.resources})
        identifier = self.cloudformation.create_stack(StackName=self.name, TemplateBody=template)["StackId"]
        until(lambda: self.clusters("BOOTSTRAPPING"))
        return str(identifier)

    def finish_boot(self):
        self._upload("slow", f"{self.name}.go", "")

    def clusters(self, *states):
        found = self.client("emr").list_clusters(ClusterStates=list(states))["Clusters"]
        return [cluster["Id"] for cluster in found if cluster["Name"] == self.name]

    def status(self, identifier):
        return str(self.cloudformation.describe_stacks(StackName=identifier)["Stacks"][0]["StackStatus"])

    def until(self, identifier, *statuses):
        """Wait until the stack has one of these statuses. Return all statuses that it had during the wait."""
        seen = []
        until(lambda: seen.append(self.status(identifier)) or seen[-1] in statuses)
        return seen


@pytest.fixture
def slow(stacks, client, upload):
    return lambda name: SlowStack(stacks, client, upload, name)


def test_a_stack_can_be_deleted_completely_during_its_creation(slow, client):
    stack = slow("unmade")
    identifier = stack.start()
    stack.cloudformation.delete_stack(StackName="unmade")
    stack.finish_boot()
    seen = stack.until(identifier, "DELETE_COMPLETE", "DELETE_FAILED", "CREATE_COMPLETE")
    assert set(seen) <= {"CREATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"}
    assert stack.clusters("STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING") == []
    assert client("sns").list_topics()["Topics"] == []
    events = stack.cloudformation.describe_stack_events(StackName=identifier)["StackEvents"]
    last = [event["ResourceStatus"] for event in events if event["LogicalResourceId"] == "Last"]
    assert "CREATE_COMPLETE" not in last


def test_a_stack_in_progress_shows_its_cluster_and_refuses_updates_and_deletions(slow, client, messages):
    stack = slow("changed")
    identifier = stack.start()

    def shown():
        found = stack.cloudformation.describe_stack_resources(StackName="changed")["StackResources"]
        return {each["LogicalResourceId"]: (each["ResourceStatus"], each["PhysicalResourceId"]) for each in found}

    until(lambda: "Cluster" in shown())  # CloudFormation lists the cluster shortly after EMR
    assert shown()["Cluster"] == ("CREATE_IN_PROGRESS", *stack.clusters("BOOTSTRAPPING"))
    body = json.dumps({"Resources": {"First": TOPIC}})
    messages.hide(identifier, "STACK")
    with messages.raises(ClientError):
        stack.cloudformation.update_stack(StackName="changed", TemplateBody=body)
    with messages.raises(ClientError):
        stack.cloudformation.create_change_set(StackName="changed", ChangeSetName="changes", TemplateBody=body)
    stack.finish_boot()
    stack.until(identifier, "CREATE_COMPLETE")
    client("s3").delete_object(Bucket="slow", Key="changed.go")
    properties = {**stack.cluster["Properties"], "ServiceRole": "other"}
    resources = {**stack.resources, "Cluster": {**stack.cluster, "Properties": properties}}
    stack.cloudformation.update_stack(StackName="changed", TemplateBody=json.dumps({"Resources": resources}))
    until(lambda: stack.clusters("BOOTSTRAPPING"))
    with messages.raises(ClientError):
        stack.cloudformation.delete_stack(StackName="changed")
    stack.finish_boot()
    stack.until(identifier, "UPDATE_COMPLETE")
    assert stack.stacks.delete("changed") == "DELETE_COMPLETE"


def test_a_stack_refuses_updates_after_a_failed_deletion(stacks, aws):
    stacks.create("stuck", {"First": TOPIC})
    with aws.faults.during(DeleteFails(logical_id="First")):
        assert stacks.delete("stuck") == "DELETE_FAILED"
    with pytest.raises(ClientError, match="is in DELETE_FAILED state"):
        stacks.update("stuck", {"First": TOPIC, "Second": TOPIC})
    assert stacks.delete("stuck") == "DELETE_COMPLETE"
