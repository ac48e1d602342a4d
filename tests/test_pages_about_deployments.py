"""The commands of the pages about deployments run as they stand, on the emulator."""

import os
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from shoal_local_aws.aws import ACCOUNT, REGION, EmbeddedAws

from shoal.aws import cdk
from shoal.deployments.removal.inventory import inventory, left_over
from tests.command_user import make_repository_with_empty_installs, replace
from tests.fleet import boot_agent
from tests.page_runs import PAGE_PATIENCE, prepare, run
from tests.pages import Page, pages
from tests.shoal.cli.command import shoal
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(PAGE_PATIENCE + PATIENCE)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with reviews and their dataset."""
    return prepare(tmp_path_factory.mktemp("prepared"), "dataset")


@pytest.fixture(scope="module")
def account(aws: EmbeddedAws) -> Iterator[set[str]]:
    """An account that is ready for deployments, and has nothing of them after the pages.

    Yields the names of deployments for the pages. Their data bucket stays if a page did not fetch its run.
    """
    cdk.prepare(account=ACCOUNT, region=REGION, environment={}, log=aws.folder / "cdk.log")
    before, named = inventory(), set[str]()
    yield named
    for deployment in {*named, *deployments()}:
        done = shoal("destroy", deployment, "--yes", "--stop-runs", "--delete-runs")
        assert done.returncode == 0, done.stderr
    assert left_over(before, inventory()) == {}


def deployments() -> list[str]:
    """The names of the account's deployments."""
    stacks = (stack["StackName"] for stack in boto3.client("cloudformation").describe_stacks()["Stacks"])
    return [name.removeprefix("Shoal-") for name in stacks if name.startswith("Shoal-")]


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PYTHONPATH with a repository in which nodes install nothing."""
    repository = make_repository_with_empty_installs(tmp_path_factory.mktemp("light") / "repository")
    replace(repository, "bootstrap/gpu/boot.sh", boot_agent('"$DATA_BUCKET"'))
    return os.pathsep.join(map(str, (repository, *repository.glob("packages/*"))))


@pytest.mark.parametrize(
    "page",
    sorted((page for page in pages() if page.needs_aws), key=lambda page: page.ends_deployment),
    ids=lambda page: page.name,
)
def test_the_commands_of_a_page_run(
    page: Page, tmp_path: Path, prepared: Path, light: str, account: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.path.parent.name != "tutorial":  # the tutorial is a whole life, with real installations
        monkeypatch.setenv("PYTHONPATH", light)
    if "deployment" in page.prepare and "demo" not in deployments():
        done = shoal("deploy", "demo", "--yes")
        assert done.returncode == 0, done.stderr
        account.add("demo")
    run(page, tmp_path / "page", prepared)
    shoal("stop", "demo")  # the run that the page has left to itself; otherwise the next page waits for it
