"""Custom resources that make a stack deletable. They empty and delete buckets, remove the rules between EMR's security
groups, and delete the guard's parameters. Their Lambda function also records the owner of a deployment.

Set the dependencies with care, because CloudFormation deletes in reverse order of creation. Nodes and clusters must
depend on these custom resources. The custom resources must depend on the buckets and security groups. Then the function
runs after the last write to a bucket.
"""

from collections.abc import Sequence

from aws_cdk import ArnFormat, CustomResource, Duration, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from shoal_guard.functions import function
from shoal_guard.grants import READ, accept, accept_pattern, allow, allow_objects, explain, region_in_rule
from shoal_guard.handlers.cleanup import GUARDDUTY, job_prefix

_CHILD = "Cleanup"
_COLON = ArnFormat.COLON_RESOURCE_NAME
_LONGEST = Duration.minutes(15)


class Cleanup(Construct):
    """One Lambda function, and one custom resource for each cleanup that the function does on the stack's deletion."""

    role: iam.Role

    @classmethod
    def of(cls, scope: Construct) -> "Cleanup":
        """Return the only `Cleanup` of the stack that contains `scope`. The first call creates it."""
        stack = Stack.of(scope)
        found = stack.node.try_find_child(_CHILD)
        return found if isinstance(found, cls) else cls(stack, _CHILD)

    def __init__(self, scope: Construct, construct_id: str) -> None:
        """Create the function and its role. The role has no permissions yet."""
        super().__init__(scope, construct_id)
        self._function, self.role = function(
            self,
            description="Cleans up when the stack is deleted, and refuses changes by another owner",
            files=["cleanup.py"],
            handler="cleanup.handler",
            timeout=_LONGEST,
        )

    def empty(
        self,
        bucket: s3.Bucket,
        name: str,
        *,
        keep: bool = False,
        unfetched: tuple[str, str] | None = None,
        tag: str | None = None,
    ) -> CustomResource:
        """Add a custom resource that deletes the bucket with its content before CloudFormation would delete it.

        Args:
            bucket: The bucket.
            name: Construct id of the custom resource.
            keep: Keep the bucket. A kept bucket needs the custom resource, too. If an update removed the custom
                resource from a deployed stack, its deletion would empty the bucket.
            unfetched: Prefixes of the runs, and of the records of fetched runs. The bucket is kept while it contains a
                run that was not fetched.
            tag: Key of a tag. The bucket is deleted only if it still has this tag.
        """
        runs = dict(zip(("Runs", "Fetched"), unfetched, strict=True)) if unfetched else {}
        tagged = {"Tag": tag} if tag else {}
        return self._resource(name, {} if keep else {"Bucket": bucket.bucket_name, **runs, **tagged})

    def claim(self, *, deployment: str, owner: str, topology: str) -> CustomResource:
        """Add a custom resource that records owner and topology at creation. An update with a different owner or
        topology fails."""
        claim = {"Deployment": deployment, "Owner": owner, "Topology": topology}
        return self._resource("Claim", {"Claim": claim})

    def delete_parameters(self, parameters: Sequence[str]) -> CustomResource:
        """Add a custom resource that deletes Systems Manager parameters that CloudFormation did not create."""
        names = [name.lstrip("/") for name in parameters]
        arns = [Stack.of(self).format_arn(service="ssm", resource="parameter", resource_name=name) for name in names]
        allow(self.role, ["ssm:DeleteParameters"], arns)
        return self._resource("Parameters", {"Parameters": list(parameters)})

    def stop_jobs(self, deployment: str, tag: str, logs: str) -> CustomResource:
        """Add a custom resource that stops the SageMaker training jobs of a Shoal deployment, and deletes their log
        streams.

        `tag` is the key of the tag by which the jobs are found. `logs` is the name of their log group.
        """
        stack, jobs = Stack.of(self), f"{job_prefix(deployment)}-*"
        job = stack.format_arn(service="sagemaker", resource="training-job", resource_name=jobs)
        group = stack.format_arn(service="logs", resource="log-group", resource_name=logs, arn_format=_COLON)
        # Use a separate policy. If an update removes managed training from the topology, CloudFormation changes the
        # role's default policy before it asks the function to stop the jobs. It deletes this separate policy only
        # afterwards.
        policy = iam.Policy(self, "JobsPolicy", roles=[self.role])
        for actions, resource in (
            (["sagemaker:ListTrainingJobs"], "*"),
            (["sagemaker:StopTrainingJob", "sagemaker:ListTags"], job),
            (["logs:DescribeLogStreams"], f"{group}:*"),
            (["logs:DeleteLogStream"], f"{group}:log-stream:{jobs}"),
        ):
            policy.add_statements(iam.PolicyStatement(actions=actions, resources=[resource]))
        region = region_in_rule(stack)
        for pattern in (
            f"sagemaker:{region}:<AWS::AccountId>:training-job/{jobs}",
            f"logs:{region}:<AWS::AccountId>:log-group:{logs}:*",
            f"logs:{region}:<AWS::AccountId>:log-group:{logs}:log-stream:{jobs}",
        ):
            reason = "The name limits it to this deployment's jobs. IAM can limit listing only to a whole log group."
            accept(policy, f"IAM5[Resource::arn:<AWS::Partition>:{pattern}]", reason)
        accept(policy, "IAM5[Resource::*]", "IAM cannot limit SageMaker's list calls to certain jobs.")
        stopped = self._resource("Jobs", {"Jobs": deployment, "Tag": tag})
        stopped.node.add_dependency(policy)
        return stopped

    def delete_guardduty(self, vpc: ec2.IVpc) -> CustomResource:
        """Add a custom resource that deletes what GuardDuty's automated agent added to a VPC. Otherwise subnets would
        remain. Instances must depend on the custom resource.

        Source: Amazon GuardDuty User Guide, "Using Infrastructure as Code (IaC) with GuardDuty automated security
        agents", read 2026-11-30.
        """
        policy = iam.Policy(self, "NetworkPolicy", roles=[self.role])  # separate, as for jobs
        policy.add_statements(iam.PolicyStatement(actions=["ec2:DescribeVpcEndpoints"], resources=["*"]))
        accept(policy, "IAM5[Resource::*]", "IAM cannot limit EC2's describe calls to resources.")
        tagged = {"StringLike": {f"aws:ResourceTag/{GUARDDUTY}": "*"}}
        for action, kind in (("ec2:DeleteSecurityGroup", "security-group"), ("ec2:DeleteVpcEndpoints", "vpc-endpoint")):
            arn = Stack.of(self).format_arn(service="ec2", resource=kind, resource_name="*")
            policy.add_statements(iam.PolicyStatement(actions=[action], resources=[arn], conditions=tagged))
            place = f"arn:<AWS::Partition>:ec2:{region_in_rule(Stack.of(self))}:<AWS::AccountId>:{kind}/*"
            accept(policy, f"IAM5[Resource::{place}]", "The tag limits this to resources of GuardDuty.")
            explain(policy, [action, f"*:{kind}/*"], "Only accounts with GuardDuty's automated agent need this.")
        deleted = self._resource("Network", {"Network": vpc.vpc_id})
        deleted.node.add_dependency(policy, vpc)
        return deleted

    def revoke_group_rules(self, groups: Sequence[ec2.ISecurityGroup], name: str) -> CustomResource:
        """Add a custom resource that removes the rules between security groups before the groups are deleted."""
        return self._resource(name, {"SecurityGroups": [group.security_group_id for group in groups]})

    def allow_empty(self, bucket: s3.Bucket, *, fetched: str = "") -> None:
        """Allow the function to delete the bucket with its content, and to read the objects below `fetched`."""
        allow_objects(self.role, bucket, ("s3:DeleteObject", "s3:DeleteObjectVersion", "s3:AbortMultipartUpload"))
        more = ["s3:ListBucketVersions", "s3:ListBucketMultipartUploads", "s3:DeleteBucket"]
        allow(self.role, more, [bucket.bucket_arn])
        explain(self.role, ["s3:AbortMultipartUpload"], "Uploads that were never finished cost as much as objects.")
        if fetched:
            allow_objects(self.role, bucket, READ, under=(fetched,))

    def allow_revoke_group_rules(self, tag: str, value: str) -> None:
        """Allow the function to remove the rules of security groups that have this tag.

        The permission is limited by tag, not by group. If an update removes a group, CloudFormation would remove the
        permission for this group before it asks the function to remove the group's rules.
        """
        allow(self.role, ["ec2:DescribeSecurityGroups"], ["*"])
        allow(
            self.role,
            ["ec2:RevokeSecurityGroupIngress", "ec2:RevokeSecurityGroupEgress"],
            [Stack.of(self).format_arn(service="ec2", resource="security-group", resource_name="*")],
            {"StringEquals": {f"aws:ResourceTag/{tag}": value}},
        )
        outwards = "Outbound rules that refer to a group also block its deletion, though EMR adds no such rules."
        explain(self.role, ["ec2:RevokeSecurityGroupEgress"], outwards)
        reason = "IAM cannot limit EC2's describe calls to resources. Calls that change rules are limited by tag."
        accept_pattern(self.role, "*", reason)
        groups = f"arn:<AWS::Partition>:ec2:{region_in_rule(Stack.of(self))}:<AWS::AccountId>:security-group/*"
        accept_pattern(self.role, groups, "The tag limits this to the security groups of this stack.")

    def _resource(self, name: str, properties: dict[str, object]) -> CustomResource:
        return CustomResource(
            self,
            name,
            service_token=self._function.function_arn,
            resource_type="Custom::Cleanup",
            properties=properties,
            service_timeout=Duration.minutes(_LONGEST.to_minutes() + 1),
        )
