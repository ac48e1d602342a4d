"""A stack for somebody else's job: Spark on EMR, then two kinds of GPUs that share a folder. It leaves nothing behind.

cdk deploy --app "python examples/clusters_of_ones_own.py"
"""

from aws_cdk import App, CfnOutput, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from shoal.cdk import CleanBucket, EmrCluster, EmrNodes, GpuNodes, Guard, Share


class Speech(Stack):
    """Recordings are cut by Spark, and a model learns from them on what GPUs there are."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        """Build it."""
        super().__init__(scope, construct_id)
        private = ec2.SubnetConfiguration(name="Nodes", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
        vpc = ec2.Vpc(self, "Vpc", max_azs=2, nat_gateways=0, subnet_configuration=[private])
        vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        bucket, logs = CleanBucket(self, "Recordings", versioned=True), CleanBucket(self, "Logs")
        folder = Share(self, "Folder", vpc=vpc)

        spark = EmrCluster(self, "Spark", vpc=vpc, log=logs, core=EmrNodes(instance_type="m5.xlarge", market="spot"))
        bucket.grant_read_write(spark)
        bucket.written_by(spark.cluster)

        fast = GpuNodes(self, "fast", vpc=vpc, instance_type="g5.xlarge", count=2)
        slow = GpuNodes(self, "slow", vpc=vpc, instance_type="g4dn.xlarge", count=4, market="spot")
        fast.connections.allow_from(slow, ec2.Port.all_traffic())
        slow.connections.allow_from(fast, ec2.Port.all_traffic())
        for nodes in (fast, slow):
            bucket.grant_read_write(nodes)
            bucket.written_by(nodes.group)
            folder.allow_from(nodes, nodes)

        Guard(self, "Guard", max_hours=24, budget=50, mail="me@example.org")
        CfnOutput(self, "Bucket", value=bucket.bucket_name)


app = App()
Speech(app, "Speech")
app.synth()
