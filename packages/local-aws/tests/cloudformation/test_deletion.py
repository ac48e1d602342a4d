from shoal_local_aws.faults.kinds import DeleteFails

RESOURCES = {
    "Bucket": {"Type": "AWS::S3::Bucket"},
    "Guard": {"Type": "AWS::SNS::Topic", "DependsOn": "Bucket"},
    "Costly": {"Type": "AWS::SQS::Queue", "DependsOn": "Guard"},
    "Unneeded": {"Type": "AWS::SNS::Topic"},
}


def left(stacks, name):
    found = stacks.cloudformation.list_stack_resources(StackName=name)["StackResourceSummaries"]
    return {each["LogicalResourceId"] for each in found if each["ResourceStatus"] != "DELETE_COMPLETE"}


def test_dependencies_are_not_deleted_before_their_dependents(stacks, client, aws):
    stacks.create("order", RESOURCES)
    topic = stacks.physical("order", "Guard")
    with aws.faults.during(DeleteFails(logical_id="Costly", reason="in use", times=1)):
        assert stacks.delete("order") == "DELETE_FAILED"
    assert "in use" in stacks.reasons("order")
    assert left(stacks, "order") == {"Bucket", "Guard", "Costly"}
    assert client("sns").get_topic_attributes(TopicArn=topic)
    assert stacks.delete("order") == "DELETE_COMPLETE"


def test_dependencies_of_a_retained_resource_are_deleted(stacks, client, aws):
    stacks.create("left", RESOURCES)
    with aws.faults.during(DeleteFails(logical_id="Costly")):
        assert stacks.delete("left") == "DELETE_FAILED"
        assert stacks.delete("left", RetainResources=["Costly"]) == "DELETE_COMPLETE"
    assert client("sns").list_topics()["Topics"] == []
