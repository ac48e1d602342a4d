import pytest

from tests.infra import pages
from tests.infra.invariants import needs

BUCKETS = "CleanupRawBucket CleanupDataBucket CleanupLogBucket CleanupClaim NetworkVpcS3"


@pytest.fixture(scope="module")
def resources(templates):
    return templates.resources(pages.DEMO)


@pytest.mark.parametrize(
    ("name", "lasting"),
    [
        (
            "PreprocessingCluster",
            f"{BUCKETS} CleanupGroups PreprocessingNodeRole PreprocessingNodeRoleDefaultPolicy "
            "PreprocessingNodeProfile PreprocessingServiceRole PreprocessingServiceRoleDefaultPolicy",
        ),
        *(
            (
                f"Training{group}ASG",
                f"{BUCKETS} TrainingNodeRole TrainingNodeRoleDefaultPolicy TrainingNodeProfile",
            )
            for group in ("fast", "slow")
        ),
        ("CleanupGroups", "PreprocessingPrimary PreprocessingCore PreprocessingServiceAccess"),
        ("ShareFiles", "CleanupClaim"),
        ("GuardFunction", "CleanupParameters"),
    ],
)
def test_a_dependency_outlives_its_resource(name, lasting, resources):
    (logical,) = (each for each in resources if pages.name_of(each) == name)
    assert set(lasting.split()) <= {pages.name_of(each) for each in needs(resources, logical)}
