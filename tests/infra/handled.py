"""Lists the permissions that CloudFormation needs, with its execution role, for a synthesised template.

Names are those that CloudFormation generates: the stack's, the logical id, and a suffix.
"""

import json
import re
from pathlib import Path

import yaml
from shoal_local_aws.permissions.handlers import Resource, handlers_of, required_permissions
from shoal_local_aws.permissions.record import ALLOWED, Check
from shoal_local_aws.seams import identity

from infra.topology import stack_name

ACCOUNT, REGION = "111122223333", "us-east-1"
WHO = f"arn:aws:sts::{ACCOUNT}:assumed-role/cdk-shoal-cfn-exec-role-{ACCOUNT}-{REGION}/AWSCloudFormation"
_PSEUDO = {"AccountId": ACCOUNT, "Partition": "aws", "Region": REGION, "URLSuffix": "amazonaws.com"}
_ARNS = yaml.safe_load(Path(__file__).with_name("arns.yaml").read_text("utf-8"))


def statements(document):
    return [vars(each) for each in identity.parse(document)]


class Handled:
    def __init__(self, spec, template):
        self.spec, self.stack, self.template = spec, stack_name(spec.name), template
        self.resources = template["Resources"]

    def checks(self):
        """Yield the checks during the creation, update and deletion of the stack."""
        named = [each["Default"] for each in self.template["Parameters"].values() if "SSM" in each["Type"]]
        for name in {*named, *re.findall(r"resolve:ssm:([^}:]+)", json.dumps(self.resources))}:
            account = "" if name.startswith("/aws/") else ACCOUNT
            yield check("ssm:GetParameters", f"arn:aws:ssm:{REGION}:{account}:parameter{name}")
        for logical, resource in self.resources.items():
            for operation in ("create", "update", "delete"):
                made = Resource(
                    kind=resource["Type"],
                    logical=logical,
                    properties=self.resolved(resource.get("Properties", {})),
                    stack=self.stack,
                    region=REGION,
                    account=ACCOUNT,
                    physical="" if operation == "create" else self._physical(logical),
                )
                assert handlers_of(made.kind)["create"] != ["*"], f"what {made.kind} needs is not known"
                tags = {} if operation == "create" else self._tags(resource.get("Properties", {}))
                for action, arn, context in required_permissions(made, operation, self._boundary_of):
                    service = action.partition(":")[0]
                    keys = {f"{by}:ResourceTag/{tag}": value for tag, value in tags.items() for by in ("aws", service)}
                    yield check(action, arn, **context, **keys)

    def _tags(self, properties):
        """Return the tags of an existing resource; for a mount target those of its file system, as IAM does."""
        if "FileSystemId" in properties:
            properties = self.resources[properties["FileSystemId"]["Ref"]]["Properties"]
        tags = properties.get("Tags") or properties.get("FileSystemTags") or []
        return {each["Key"]: each["Value"] for each in tags} if isinstance(tags, list) else {}

    def resolved(self, value):
        if isinstance(value, list):
            return [self.resolved(each) for each in value]
        if not isinstance(value, dict):
            return value
        if len(value) != 1:
            return {key: self.resolved(each) for key, each in value.items()}
        ((function, of),) = value.items()
        if function == "Ref":
            return self._reference(of)
        if function == "Fn::GetAtt":
            return self._arn(of[0]) if of[1] == "Arn" else f"{of[0]}.{of[1]}"
        if function == "Fn::Join":
            return str(of[0]).join(str(self.resolved(each)) for each in of[1])
        if function == "Fn::Sub":
            return re.sub(r"\$\{([^}]+)\}", lambda found: str(self._reference(found[1])), of)
        return {function: self.resolved(of)}

    def _reference(self, name):
        if name == "AWS::StackId":
            return f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{self.stack}/1234"
        return _PSEUDO.get(name.removeprefix("AWS::")) or self._physical(name)

    def _physical(self, logical):
        kind = self.resources[logical]["Type"]
        if kind == "AWS::SNS::Topic":
            return self._arn(logical)
        name = f"{self.stack}-{logical}-1A2B3C"
        return name.lower() if kind == "AWS::S3::Bucket" else name

    def _arn(self, logical):
        kind = self.resources[logical]["Type"]
        name = f"{self.stack}-{logical}-1A2B3C" if kind == "AWS::SNS::Topic" else self._physical(logical)
        return "arn:aws:" + _ARNS[kind].format(region=REGION, account=ACCOUNT, name=name)

    def _boundary_of(self, role):
        found = (each for name, each in self.resources.items() if self._physical(name) == role)
        return next(found)["Properties"].get("PermissionsBoundary")


def check(action, resource, **context):
    return Check(WHO, action, resource, ALLOWED, REGION, context)


def distinct(checks):
    return [*{(each.action, each.resource, repr(each.context)): each for each in checks}.values()]
