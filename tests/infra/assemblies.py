"""Creates stacks from synthesised assemblies in this process, as `cdk deploy` does."""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3

from infra import topology
from shoal.deployments.removal.inventory import inventory
from tests.infra.conftest import fill, stack_of
from tests.infra.variants import SHIPPED
from tests.waiting import until


def publish(assembly: Path, stack: str) -> str:
    """Upload a stack's assets: a folder becomes a zip file. Return the bucket and key of the template."""
    template = ""
    s3 = boto3.client("s3")
    for asset in json.loads((assembly / f"{stack}.assets.json").read_text())["files"].values():
        path = assembly / asset["source"]["path"]
        body = io.BytesIO(path.read_bytes() if path.is_file() else b"")
        if path.is_dir():
            with zipfile.ZipFile(body, "w") as archive:
                for file in path.rglob("*.*"):
                    archive.write(file, file.relative_to(path))
        for place in asset["destinations"].values():
            bucket = place["bucketName"].replace("${AWS::AccountId}", "000000000000")
            s3.create_bucket(Bucket=bucket)
            s3.put_object(Bucket=bucket, Key=place["objectKey"], Body=body.getvalue())
            if path.name == f"{stack}.template.json":
                template = f"{bucket}/{place['objectKey']}"
    return template


def deploy(name: str, deployment: str, folder: Path, scripts: Mapping[str, str]) -> dict[str, set[str]]:
    """Deploy a shipped topology with other `scripts` for its nodes. Return the resources of the account before."""
    repository, assembly, stack = fill(folder / "repository"), folder / "assembly", topology.stack_name(deployment)
    for path, text in scripts.items():
        (repository / path).write_text(text)
    made: Any = stack_of(repository, topology.load(name, SHIPPED), assembly, deployment=deployment)
    made.node.root.synth()
    template = publish(assembly, stack)
    boto3.client("ssm").put_parameter(Name="/cdk-bootstrap/shoal/version", Value="31", Type="String")
    before = inventory()
    cloudformation = boto3.client("cloudformation")
    cloudformation.create_stack(
        StackName=stack,
        TemplateURL=f"{boto3.client('s3').meta.endpoint_url}/{template}",
        Capabilities=["CAPABILITY_IAM"],
        RoleARN="arn:aws:iam::000000000000:role/execution",
        Tags=[{"Key": key, "Value": value} for key, value in made.tags.tag_values().items()],
    )

    def status() -> str:
        found: str = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
        return "" if found.endswith("IN_PROGRESS") else found

    assert until(status) == "CREATE_COMPLETE"
    return before
