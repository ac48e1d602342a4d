"""The part of a topology that has SageMaker train."""

from typing import Annotated

from pydantic import AfterValidator, Field

from infra import catalog, parts
from infra.document import FieldError

PREFIX = "ml."
"""Before EC2's name of a type in SageMaker's."""

REGIONS = frozenset(
    {
        *("us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1", "sa-east-1"),
        *("eu-central-1", "eu-north-1", "eu-west-1", "eu-west-2", "eu-west-3"),
        *("ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
    }
)
"""Those in whose registry AWS's account REGISTRY has its images; others have accounts of their own."""
REGISTRY = "763104351884"
REPOSITORY = "pytorch-training"
_TAG = "2.9.0-gpu-py312-cu130-ubuntu22.04-sagemaker"


def aws_image(region: str) -> str:
    """AWS's image for training with PyTorch on SageMaker, the newest whose tag could be read in November 2026."""
    return f"{REGISTRY}.dkr.ecr.{region}.amazonaws.com/{REPOSITORY}:{_TAG}"


def _type_of_sagemaker(value: str) -> str:
    usable = [f"{PREFIX}{each.name}" for each in catalog.of_today() if each.architecture == "x86_64"]
    if not value.startswith(PREFIX):
        raise ValueError(f"'{value}' is a type of EC2; SageMaker's is {PREFIX}{value}.")
    if value not in usable:
        raise ValueError(f"SageMaker does not train on '{value}'; take {catalog.similar(value, usable)}.")
    return value


class ManagedSpec(parts.TopologyPart):
    """Training jobs of SageMaker, in place of nodes, or beside them."""

    instance_type: Annotated[str, AfterValidator(_type_of_sagemaker)] = Field(
        description="an instance type of SageMaker, ml. and the name of EC2's", examples=["ml.g5.xlarge"]
    )
    count: int = Field(default=1, ge=1, le=100, description="a whole number of instances from 1 to 100", examples=[1])
    market: parts.Market = Field(default="on-demand", description=parts.MARKET, examples=["spot"])
    max_hours: int = Field(
        default=12,
        ge=1,
        le=672,
        description="a whole number of hours from 1 to 672, after which SageMaker ends a job",
        examples=[12],
    )
    image: str | None = Field(
        default=None,
        pattern=r"^\d{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com/[a-z0-9._/-]+[:@][A-Za-z0-9_.:-]+$",
        max_length=255,
        description="the address of an image of yours in ECR, made by Shoal's Dockerfile, or nothing for AWS's with "
        "PyTorch, which gets Shoal's code at the start",
        examples=["111122223333.dkr.ecr.us-east-1.amazonaws.com/shoal:1"],
    )

    def require_region(self, region: str) -> None:
        """Raise FieldError where there is no image in a region, which SageMaker would find out at a job's start."""
        there = self.image.split(".")[3] if self.image else region
        if there != region:
            raise FieldError(f"it is in {there}, and SageMaker takes images of {region} alone.", "managed", "image")
        if not self.image and region not in REGIONS:
            raise FieldError(f"where AWS's image is in {region} is not known; name one in `image`.", "managed")

    @property
    def ec2_type(self) -> str:
        return self.instance_type.removeprefix(PREFIX)
