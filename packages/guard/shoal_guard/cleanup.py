"""Makes a stack deletable: deletes its buckets with their content, removes the rules between EMR's security groups, and
deletes the guard's parameters. The same function also keeps the owner of the deployment.

CloudFormation deletes in reverse order of creation. So nodes and clusters must depend on the resources made here, and
these on the buckets and groups: then the function runs after everything that writes to a bucket or changes a group.
"""

from collections.abc import Sequence

from aws_cdk import ArnFormat, CustomResource, Duration, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from shoal_guard.functions import function
from shoal_guard.grants import READ, accept, accept_pattern, allow, allow_objects, explain, region_in_rule
from shoal_guard.handlers.cleanup import job_prefix

_CHILD = "Cleanup"
_COLON = ArnFormat.COLON_RESOURCE_NAME
_LONGEST = Duration.minutes(15)


class Cleanup(Construct):
    """One function, and one custom resource for each thing that it cleans up when the stack is deleted."""

    role: iam.Role

    @classmethod
    def of(cls, scope: Construct) -> "Cleanup":
        """That of the stack that this is in; there is one in a stack, and the first that asks makes it."""
        stack = Stack.of(scope)
        found = stack.node.try_find_child(_CHILD)
        return found if isinstance(found, cls) else cls(stack, _CHILD)

    def __init__(self, scope: Construct, construct_id: str) -> None:
        """Build the function; its role has no permissions yet."""
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
        """Delete the bucket with its content; with a tag only if it still has that.

        `unfetched` are the prefixes of runs and of the notes of what was fetched: the bucket stays if it holds a run
        that was not.

        CloudFormation, which deletes it afterwards, finds it gone. A bucket to keep has this resource, too, but it does
        nothing. Do not leave it out: when a user decides to keep the data of a running deployment, the deletion of the
        resource would empty the bucket.
        """
        runs = dict(zip(("Runs", "Fetched"), unfetched, strict=True)) if unfetched else {}
        tagged = {"Tag": tag} if tag else {}
        return self._resource(name, {} if keep else {"Bucket": bucket.bucket_name, **runs, **tagged})

    def claim(self, *, deployment: str, owner: str, topology: str) -> CustomResource:
        """Record the owner and the topology at creation; an update with another owner or topology fails here."""
        claim = {"Deployment": deployment, "Owner": owner, "Topology": topology}
        return self._resource("Claim", {"Claim": claim})

    def delete_parameters(self, parameters: Sequence[str]) -> CustomResource:
        """Delete these parameters of Systems Manager, which CloudFormation did not create."""
        names = [name.lstrip("/") for name in parameters]
        arns = [Stack.of(self).format_arn(service="ssm", resource="parameter", resource_name=name) for name in names]
        allow(self.role, ["ssm:DeleteParameters"], arns)
        return self._resource("Parameters", {"Parameters": list(parameters)})

    def stop_jobs(self, deployment: str, tag: str, logs: str) -> CustomResource:
        """Stop the training jobs of SageMaker with this tag of a deployment of Shoal, and delete what they printed into
        the log group `logs`."""
        stack, jobs = Stack.of(self), f"{job_prefix(deployment)}-*"
        job = stack.format_arn(service="sagemaker", resource="training-job", resource_name=jobs)
        group = stack.format_arn(service="logs", resource="log-group", resource_name=logs, arn_format=_COLON)
        # A policy of its own: when a topology loses its jobs, CloudFormation changes the role's other policy before it
        # asks the function to stop them, and deletes this one afterwards.
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
            reason = "The deployment's jobs, by their names; streams are listed of the whole group."
            accept(policy, f"IAM5[Resource::arn:<AWS::Partition>:{pattern}]", reason)
        accept(policy, "IAM5[Resource::*]", "SageMaker's list of jobs cannot be limited to some of them.")
        stopped = self._resource("Jobs", {"Jobs": deployment, "Tag": tag})
        stopped.node.add_dependency(policy)
        return stopped

    def revoke_group_rules(self, groups: Sequence[ec2.ISecurityGroup], name: str) -> CustomResource:
        """Remove the rules of these groups that refer to other groups, before the groups are deleted."""
        return self._resource(name, {"SecurityGroups": [group.security_group_id for group in groups]})

    def allow_empty(self, bucket: s3.Bucket, *, fetched: str = "") -> None:
        """Let the function delete the bucket with its content, and read what is below the prefix `fetched`, if any."""
        allow_objects(self.role, bucket, ("s3:DeleteObject", "s3:DeleteObjectVersion", "s3:AbortMultipartUpload"))
        more = ["s3:ListBucketVersions", "s3:ListBucketMultipartUploads", "s3:DeleteBucket"]
        allow(self.role, more, [bucket.bucket_arn])
        explain(self.role, ["s3:AbortMultipartUpload"], "Uploads that were never finished cost as much as objects.")
        if fetched:
            allow_objects(self.role, bucket, READ, under=(fetched,))

    def allow_revoke_group_rules(self, tag: str, value: str) -> None:
        """Let the function remove rules of security groups that have this tag.

        The permission is by tag, not by group. When a topology loses its cluster, CloudFormation removes permissions
        for single groups before it asks the function to remove the groups' rules.
        """
        allow(self.role, ["ec2:DescribeSecurityGroups"], ["*"])
        allow(
            self.role,
            ["ec2:RevokeSecurityGroupIngress", "ec2:RevokeSecurityGroupEgress"],
            [Stack.of(self).format_arn(service="ec2", resource="security-group", resource_name="*")],
            {"StringEquals": {f"aws:ResourceTag/{tag}": value}},
        )
        outwards = "Rules to other groups keep those groups, too, though EMR adds none of these."
        explain(self.role, ["ec2:RevokeSecurityGroupEgress"], outwards)
        reason = "EC2's describe calls cannot be limited to resources; the calls that change something are."
        accept_pattern(self.role, "*", reason)
        groups = f"arn:<AWS::Partition>:ec2:{region_in_rule(Stack.of(self))}:<AWS::AccountId>:security-group/*"
        accept_pattern(self.role, groups, "The groups of this stack, by their tag.")

    def _resource(self, name: str, properties: dict[str, object]) -> CustomResource:
        return CustomResource(
            self,
            name,
            service_token=self._function.function_arn,
            resource_type="Custom::Cleanup",
            properties=properties,
            service_timeout=Duration.minutes(_LONGEST.to_minutes() + 1),
        )
