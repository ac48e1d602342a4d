"""Creates the resources for SageMaker training jobs: a role, the upload of Shoal's code, and a stack output.

A job is not a resource of the stack. `shoal train` starts the job, and SageMaker terminates its instances at the end.
`Cleanup` stops running jobs before the stack is deleted. Jobs that continued would cost money and write to a deleted
bucket.
"""

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct
from shoal_guard.cleanup import Cleanup
from shoal_guard.grants import READ, accept_pattern, allow, allow_objects, explain, region_in_rule
from shoal_guard.handlers.cleanup import JOB_LOGS, job_prefix

from common import names
from infra import catalog, libraries
from infra.managed_spec import REGISTRY, REPOSITORY, ManagedSpec, aws_image
from infra.stage import WRITE, SharedSettings, Stage, allow_inputs, same_account_principal

_PULL = ("ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer", "ecr:BatchGetImage")
_LOG = ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams")
_COLON = ArnFormat.COLON_RESOURCE_NAME


class Managed(Stage):
    """Resources for SageMaker training jobs. SageMaker assumes the role to copy data into a job's containers, and
    results out of the containers.

    The containers have no credentials, and can only connect to each other.
    """

    def __init__(self, scope: Construct, construct_id: str, deployment: SharedSettings, *, spec: ManagedSpec) -> None:
        """Create the role, and the custom resource that stops running jobs before the stack is deleted."""
        super().__init__(
            scope,
            construct_id,
            deployment,
            wheels=libraries.of_gpu_nodes(deployment.spec),
            packages=deployment.trainer,
            script="managed/start.sh",
        )
        stack = Stack.of(self)
        self._spec = spec
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=same_account_principal(stack, "sagemaker.amazonaws.com", service="sagemaker", name="*"),
        )
        self.payload.allow_download(self.role, listing=True)
        self._allow_image(stack)
        logs = stack.format_arn(service="logs", resource="log-group", resource_name=f"{JOB_LOGS}*", arn_format=_COLON)
        allow(self.role, _LOG, [logs])
        explain(
            self.role,
            ["logs:DescribeLogStreams"],
            "SageMaker calls this operation only if the log stream exists already.",
        )
        allow(self.role, ["cloudwatch:PutMetricData"], ["*"], {"StringEquals": {"cloudwatch:namespace": JOB_LOGS}})
        self._grant(deployment)
        stopped = Cleanup.of(self).stop_jobs(deployment.name, names.TAG_DEPLOYMENT, JOB_LOGS)
        stopped.node.add_dependency(self)
        self.machines = [self, stopped]
        self.outputs = {names.OUTPUT_MANAGED: self._describe_jobs(deployment)}

    def _grant(self, deployment: SharedSettings) -> None:
        role, data = self.role, deployment.buckets.data
        allow_objects(role, data, READ, under=(names.DATASETS, names.RUNS))
        allow_objects(role, data, (*WRITE, "s3:DeleteObject"), under=(deployment.runs,))
        allow_objects(role, data, WRITE, under=(f"{names.MODELS}{job_prefix(deployment.name)}-",))
        explain(
            role,
            ["s3:AbortMultipartUpload", "s3:DeleteObject"],
            "SageMaker needs these actions only when it replaces or removes checkpoints.",
        )
        allow_inputs(role, deployment.spec.inputs)
        if deployment.key:  # SageMaker encrypts the model with the key of its job
            allow(role, ["kms:Encrypt"], [deployment.key.key_arn])
        stack = Stack.of(self)
        accept_pattern(
            role,
            "*",
            "Actions for metrics and ECR's token cannot name a resource. A condition limits metrics to one namespace.",
        )
        logs = f"arn:<AWS::Partition>:logs:{region_in_rule(stack)}:<AWS::AccountId>:log-group:{JOB_LOGS}*"
        accept_pattern(role, logs, "SageMaker has one log group for all training jobs of an account.")

    def _allow_image(self, stack: Stack) -> None:
        """Allow SageMaker to pull the container image: AWS's image, or the user's image."""
        registry, _, rest = (self._spec.image or "").partition(".")
        repository = rest.partition("/")[2].partition("@")[0].partition(":")[0]
        region = rest.split(".")[2] if self._spec.image else stack.region
        arn = f"arn:{stack.partition}:ecr:{region}:{registry or REGISTRY}:repository/{repository or REPOSITORY}"
        allow(self.role, _PULL, [arn])
        allow(self.role, ["ecr:GetAuthorizationToken"], ["*"])
        explain(
            self.role,
            [*_PULL, "ecr:GetAuthorizationToken", "*:repository/*", "[*]"],
            "The emulator does not pull images.",
        )

    def _describe_jobs(self, deployment: SharedSettings) -> str:
        """Return, as JSON, the settings that are the same for all jobs. In the JSON, `beside` is true if the deployment
        also has node groups."""
        spec, payload = self._spec, self.payload
        return Stack.of(self).to_json_string(
            {
                "role": self.role.role_arn,
                "image": spec.image or aws_image(Stack.of(self).region),
                "instance_type": spec.instance_type,
                "count": spec.count,
                "market": spec.market,
                "max_hours": spec.max_hours,
                "gpu": catalog.find(spec.ec2_type).gpu is not None and not deployment.emulated,
                "beside": bool(deployment.spec.training),
                **({"key": deployment.key.key_arn} if deployment.key else {}),
                **({} if spec.image else {"code": payload.code, "wheels": payload.wheels, "script": payload.script}),
            }
        )
