"""Every command of the tutorials and how-to guides runs as it stands."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import boto3
import click
import pytest
from shoal_local_aws.aws import ACCOUNT, REGION, EmbeddedAws

from bootstrap.aws import cdk
from bootstrap.cli.commands import shoal as command_line
from bootstrap.demo.reviews import write_reviews
from bootstrap.removal.inventory import inventory, left_over
from tests.bootstrap.cli.command import shoal
from tests.pages import PREPARED, ROOT, Page, pages, shoal_commands
from tests.waiting import PATIENCE

PAGES = pages()
README = Page(ROOT / "README.md")
LOCAL = [page for page in PAGES if not page.needs_aws]
ON_AWS = sorted((page for page in PAGES if page.needs_aws), key=lambda page: page.ends_deployment)
_FILES = {"reviews": "reviews", "dataset": "results/data", "model": "results/model"}
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
FOREIGN = {"--no-rollback", "--standalone"}
"""Options of the CDK and of torchrun."""
_PAGE_PATIENCE = 3 * PATIENCE  # a page has several commands, which each may take as long as a test
_QUOTED = 2_000  # characters of output in a failure's message


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with reviews, their dataset and a model of it."""
    folder = tmp_path_factory.mktemp("prepared")
    for number, texts in enumerate((2_000, 1_000)):
        write_reviews(folder / "reviews" / f"part-{number + 1}.jsonl", texts=texts, seed=number)
    data, model = folder / "results" / "data", folder / "results" / "model"
    options = ("--local", "--model", "linear", "--epochs", "1")
    for done in (
        shoal("preprocess", "--local", "--input", folder / "reviews", "--output", data),
        shoal("train", *options, "--data", data / "dataset.h5", "--output", model),
    ):
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def account(aws: EmbeddedAws) -> Iterator[None]:
    """An account that is ready for deployments, and has nothing of them after the pages."""
    cdk.prepare(account=ACCOUNT, region=REGION, environment={}, log=aws.folder / "cdk.log")
    before = inventory()
    yield
    for deployment in {"demo", *deployments()}:  # the data bucket of `demo` stays if a page did not fetch its run
        done = shoal("destroy", deployment, "--yes", "--stop-runs", "--delete-runs")
        assert done.returncode == 0, done.stderr
    assert left_over(before, inventory()) == {}


def deployments() -> list[str]:
    """The names of the account's deployments."""
    stacks = (each["StackName"] for each in boto3.client("cloudformation").describe_stacks()["Stacks"])
    return [name.removeprefix("Shoal-") for name in stacks if name.startswith("Shoal-")]


def run(page: Page, folder: Path, prepared: Path) -> None:
    """Copy the files that a page asks for into a folder, and run its blocks there, in their order."""
    assert set(page.prepare) <= set(PREPARED), f"{page.name} asks for what tests/pages.py does not list"
    for name, path in _FILES.items():
        if name in page.prepare:
            shutil.copytree(prepared / path, folder / path)
    printed = starts(execute("\n".join(page.blocks("sh")), folder))
    if page.path.parent.name == "tutorial":
        shown = {start for block in page.blocks("text") for start in starts(block)}
        never = [start for start in shown if not any(each.startswith(start) for each in printed)]
        assert never == [], f"{page.name} shows lines that no command printed"


def starts(text: str) -> set[str]:
    """The first words of each line, without names and numbers, which differ from run to run."""
    found = (re.findall(r"[A-Za-z]{3,}", line.split("...")[0])[:3] for line in text.splitlines())
    return {" ".join(words) for words in found if words}


def execute(commands: str, folder: Path) -> str:
    """Run shell commands in a folder as a user does who answers every question with yes; returns what they printed."""
    typed, keyboard = os.openpty()
    os.write(typed, b"y\n" * 20)
    try:
        done = subprocess.run(
            ["bash", "-eux", "-c", commands],
            cwd=folder,
            stdin=keyboard,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_PAGE_PATIENCE,
            check=False,
        )
    finally:
        os.close(typed)
        os.close(keyboard)
    assert done.returncode == 0, done.stdout[-_QUOTED:]
    return done.stdout


@pytest.mark.parametrize("page", LOCAL, ids=lambda page: page.name)
def test_the_commands_of_a_local_page_run(page: Page, tmp_path: Path, prepared: Path) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    run(page, folder, prepared)


@pytest.mark.soak
def test_the_commands_of_the_readme_run(tmp_path: Path, prepared: Path) -> None:
    """All but `make`, which sets up this checkout."""
    shutil.copytree(prepared / "reviews", tmp_path / "reviews")
    blocks = [block for block in README.blocks("sh") if not block.startswith("make ")]
    assert blocks
    execute("\n".join(blocks), tmp_path)


@pytest.mark.end_to_end
@pytest.mark.slow
@pytest.mark.timeout(_PAGE_PATIENCE + PATIENCE)
@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("page", ON_AWS, ids=lambda page: page.name)
def test_the_commands_of_a_page_about_deployments_run_on_the_emulator(
    page: Page, tmp_path: Path, prepared: Path
) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    if "deployment" in page.prepare and "demo" not in deployments():
        done = shoal("deploy", "demo", "--yes")
        assert done.returncode == 0, done.stderr
    run(page, folder, prepared)
    shoal("stop", "demo")  # the run that the page has left to itself; otherwise the next page waits for it


@pytest.mark.parametrize("page", [*PAGES, README], ids=lambda page: page.name)
def test_commands_that_no_test_can_run_have_options_that_exist(page: Page) -> None:
    languages = ("console", "sh", "") if page == README else ("console",)
    for command in (
        each for language in languages for block in page.blocks(language) for each in shoal_commands(block)
    ):
        try:
            parse(command_line, command)
        except click.UsageError as error:
            pytest.fail(f"{page.name}: shoal {' '.join(command)}: {error.format_message()}")


def test_options_that_pages_name_exist() -> None:
    known = set(FOREIGN)
    for name in command_line.commands:
        _, command, _ = command_line.resolve_command(click.Context(command_line), [name])
        commands = [command, *getattr(command, "commands", {}).values()]
        known |= {flag for each in commands if each for parameter in each.params for flag in parameter.opts}
    named = {(page.name, option) for page in PAGES for option in OPTION.findall(page.prose)}
    assert sorted(each for each in named if each[1] not in known) == []


def parse(command: click.Command, arguments: list[str]) -> None:
    """Parse a command line of `shoal`. Raises click.UsageError for a command or an option that does not exist."""
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        _, found, arguments = command.resolve_command(click.Context(command), arguments)
        assert found is not None
        command = found
    if "--help" not in arguments:
        command.make_context("shoal", arguments)
