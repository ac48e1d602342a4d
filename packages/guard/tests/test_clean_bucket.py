"""`CleanBucket` in a stack that is not a Shoal deployment."""


def test_buckets_of_one_name_in_two_parts_of_a_stack_are_emptied_after_their_own_writers():
    from aws_cdk import App, Stack
    from aws_cdk import aws_sqs as sqs
    from constructs import Construct
    from shoal_guard import CleanBucket

    stack = Stack(App(analytics_reporting=False, builtin_cloud_formation_validation=False), "Speech")
    for part in ("Early", "Late"):
        scope = Construct(stack, part)
        CleanBucket(scope, "Log", versioned=True).written_by(sqs.Queue(scope, "Writer"))
    resources = stack.node.root.synth().get_stack_by_name("Speech").template["Resources"]
    for part in ("Early", "Late"):
        (bucket, policy, writer) = (
            next(name for name, each in resources.items() if name.startswith(part) and each["Type"] == kind)
            for kind in ("AWS::S3::Bucket", "AWS::S3::BucketPolicy", "AWS::SQS::Queue")
        )
        (emptied,) = resources[writer]["DependsOn"]
        assert resources[policy]["DependsOn"] == [emptied]
        assert resources[emptied]["Type"] == "Custom::Cleanup"
        assert resources[emptied]["Properties"]["Bucket"] == {"Ref": bucket}
        assert resources[bucket]["DeletionPolicy"] == "Delete"
