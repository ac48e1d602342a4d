"""Model of the topology field `managed`: SageMaker training jobs."""

from typing import Annotated

from pydantic import AfterValidator, Field

from infra import catalog, parts
from infra.document import FieldError

PREFIX = "ml."
"""Prefix that turns an EC2 instance type into a SageMaker instance type."""

REGIONS = frozenset(
    {
        *("us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1", "sa-east-1"),
        *("eu-central-1", "eu-north-1", "eu-west-1", "eu-west-2", "eu-west-3"),
        *("ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
    }
)
"""Regions in which AWS publishes its images from the account REGISTRY. In other regions, AWS uses other accounts."""
REGISTRY = "763104351884"
REPOSITORY = "pytorch"
TAG = "2.13.0-cu133-amzn2023-sagemaker"
"""Tag of AWS's image for PyTorch training. The tests run with the same PyTorch. AWS's images up to PyTorch 2.10 are in
the repository `pytorch-training`. (github.com/aws/deep-learning-containers, docs/src/data/pytorch/
2.13-cuda-sagemaker.yml, read on 2026-11-30)"""


def aws_image(region: str) -> str:
    """Return the address of AWS's SageMaker image for PyTorch training in `region`."""
    return f"{REGISTRY}.dkr.ecr.{region}.amazonaws.com/{REPOSITORY}:{TAG}"


def _type_of_sagemaker(value: str) -> str:
    usable = [f"{PREFIX}{each.name}" for each in catalog.of_today() if each.architecture == "x86_64"]
    if not value.startswith(PREFIX):
        raise ValueError(f"'{value}' is an EC2 instance type; write the SageMaker instance type, {PREFIX}{value}.")
    if value not in usable:
        raise ValueError(f"SageMaker does not train on '{value}'; use {catalog.similar(value, usable)}.")
    return value


class ManagedSpec(parts.TopologyPart):
    """SageMaker training jobs. The topology can also have node groups."""

    instance_type: Annotated[str, AfterValidator(_type_of_sagemaker)] = Field(
        description="a SageMaker instance type, which is ml. followed by an EC2 instance type",
        examples=["ml.g5.xlarge"],
    )
    count: int = Field(default=1, ge=1, le=100, description="a whole number of instances from 1 to 100", examples=[1])
    market: parts.Market = Field(default="on-demand", description=parts.MARKET, examples=["spot"])
    max_hours: int = Field(
        default=12,
        ge=1,
        le=672,
        description="a whole number of hours from 1 to 672, after which SageMaker stops a job",
        examples=[12],
    )
    image: str | None = Field(
        default=None,
        pattern=r"^\d{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com/[a-z0-9._/-]+[:@][A-Za-z0-9_.:-]+$",
        max_length=255,
        description="the address of your own image in ECR, built from Shoal's Dockerfile, or nothing for AWS's PyTorch "
        "image, which downloads Shoal's code at the start",
        examples=["111122223333.dkr.ecr.us-east-1.amazonaws.com/shoal:1"],
    )

    def require_region(self, region: str) -> None:
        """Raise FieldError if the image is not in the region. Without this check, SageMaker would refuse the image only
        when a job starts."""
        there = self.image.split(".")[3] if self.image else region
        if there != region:
            raise FieldError(
                f"the image is in {there}, but SageMaker only uses images in {region}; copy the image to {region}.",
                "managed",
                "image",
            )
        if not self.image and region not in REGIONS:
            raise FieldError(
                f"Shoal does not know AWS's image in {region}; write the address of an image in `image`.", "managed"
            )

    @property
    def ec2_type(self) -> str:
        return self.instance_type.removeprefix(PREFIX)
