"""A CDK app with a web service and a database. Its stack is deleted after eight hours.

cdk deploy --app "python examples/guarded_stack.py"
"""

from aws_cdk import App, RemovalPolicy, Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_rds as rds
from aws_cdk import aws_s3 as s3
from constructs import Construct
from shoal_guard import Guard


class WebShop(Stack):
    """Stack with two machines, a database, and a bucket."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        """Build the stack."""
        super().__init__(scope, construct_id)
        vpc = ec2.Vpc(self, "Vpc", max_azs=2, nat_gateways=0)
        template = ec2.LaunchTemplate(
            self,
            "Machine",
            instance_type=ec2.InstanceType("m5.xlarge"),
            machine_image=ec2.MachineImage.generic_linux({"us-east-1": "ami-0a1b2c3d4e5f60718"}),
            security_group=ec2.SecurityGroup(self, "Web", vpc=vpc),
        )
        autoscaling.AutoScalingGroup(
            self,
            "Machines",
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PUBLIC),
            launch_template=template,
            min_capacity=2,
            max_capacity=2,
        )
        rds.CfnDBInstance(
            self,
            "Orders",
            engine="postgres",
            db_instance_class="db.t3.micro",
            allocated_storage="20",
            master_username="orders",
            manage_master_user_password=True,
        ).apply_removal_policy(RemovalPolicy.SNAPSHOT)
        s3.Bucket(self, "Uploads", removal_policy=RemovalPolicy.RETAIN)

        Guard(self, "Guard", max_hours=8, mail="me@example.org")


app = App()
WebShop(app, "WebShop")
app.synth()
