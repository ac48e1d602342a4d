"""Creates what training jobs of SageMaker need: their role, Shoal's code, and an output that says the rest.

A job itself is no resource of a stack: `shoal train` starts it, and SageMaker ends it. One that still runs when the
stack is deleted would cost money, and write into a bucket that is gone: `Cleanup` stops it first.
"""

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct
from shoal_guard.grants import accept_pattern, allow, explain, region_in_rule
from shoal_guard.handlers.cleanup import JOB_LOGS

from infra.managed_spec import REGISTRY, REPOSITORY, ManagedSpec, aws_image
from infra.payload import Payload
from infra.roles import same_account_principal

_PULL = ("ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer", "ecr:BatchGetImage")
_LOG = ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams")
_COLON = ArnFormat.COLON_RESOURCE_NAME


class Managed(Construct):
    """The role of jobs, which SageMaker assumes to bring data into their containers and results out of them.

    The containers themselves have no network but to each other, and no credentials.
    """

    role: iam.Role
    payload: Payload

    def __init__(
        self, scope: Construct, construct_id: str, *, spec: ManagedSpec, payload: Payload, key: kms.IKey | None
    ) -> None:
        """Build the role, which cannot read or write data yet."""
        super().__init__(scope, construct_id)
        stack = Stack.of(self)
        self._spec, self._key, self.payload = spec, key, payload
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=same_account_principal(stack, "sagemaker.amazonaws.com", service="sagemaker", name="*"),
        )
        payload.allow_download(self.role, listing=True)
        self._allow_image(stack)
        logs = stack.format_arn(service="logs", resource="log-group", resource_name=f"{JOB_LOGS}*", arn_format=_COLON)
        allow(self.role, _LOG, [logs])
        explain(self.role, ["logs:DescribeLogStreams"], "SageMaker asks for it where a stream is there already.")
        allow(self.role, ["cloudwatch:PutMetricData"], ["*"], {"StringEquals": {"cloudwatch:namespace": JOB_LOGS}})

    def _allow_image(self, stack: Stack) -> None:
        """Let SageMaker pull AWS's image, or the user's."""
        registry, _, rest = (self._spec.image or "").partition(".")
        repository = rest.partition("/")[2].partition("@")[0].partition(":")[0]
        region = rest.split(".")[2] if self._spec.image else stack.region
        arn = f"arn:{stack.partition}:ecr:{region}:{registry or REGISTRY}:repository/{repository or REPOSITORY}"
        allow(self.role, _PULL, [arn])
        allow(self.role, ["ecr:GetAuthorizationToken"], ["*"])
        explain(
            self.role,
            [*_PULL, "ecr:GetAuthorizationToken", "*:repository/*", "[*]"],
            "Images are not pulled on the emulator.",
        )

    def output(self, *, beside: bool) -> str:
        """What jobs have in common, as JSON; `beside`: whether the deployment has nodes that train, too."""
        spec, payload = self._spec, self.payload
        return Stack.of(self).to_json_string(
            {
                "role": self.role.role_arn,
                "image": spec.image or aws_image(Stack.of(self).region),
                "instance_type": spec.instance_type,
                "count": spec.count,
                "market": spec.market,
                "max_hours": spec.max_hours,
                "beside": beside,
                **({"key": self._key.key_arn} if self._key else {}),
                **({} if spec.image else {"code": payload.code, "wheels": payload.wheels, "script": payload.script}),
            }
        )

    def accept_findings(self) -> None:
        """Acknowledge findings of the role's policy, once it is complete."""
        stack = Stack.of(self)
        accept_pattern(self.role, "*", "Metrics and ECR's token have no resource; the namespace of metrics is limited.")
        logs = f"arn:<AWS::Partition>:logs:{region_in_rule(stack)}:<AWS::AccountId>:log-group:{JOB_LOGS}*"
        accept_pattern(self.role, logs, "SageMaker has one log group for all training jobs of an account.")
