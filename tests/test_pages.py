"""The commands of the tutorials and how-to guides exist, and those that need no AWS run as they stand."""

import re
from pathlib import Path

import click
import pytest

from shoal.cli.commands import shoal as command_line
from tests.page_runs import execute, prepare, run
from tests.pages import README, Page, pages, shoal_commands

PAGES = pages()
TUTORIAL = "docs/tutorial/first-model.md"
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
FOREIGN = {"--no-read-logs", "--no-rollback", "--standalone"}
"""Options of mrjob, the CDK and torchrun."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with reviews, their dataset and a model of it."""
    return prepare(tmp_path_factory.mktemp("prepared"), "dataset", "model")


def test_the_commands_of_the_first_tutorial_run(tmp_path: Path) -> None:
    (page,) = (page for page in PAGES if page.name == TUTORIAL)
    run(page, tmp_path / "page", prepare(tmp_path / "prepared", texts=(2_000, 1_000)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if not page.needs_aws and page.name != TUTORIAL and page.blocks("sh")],
    ids=lambda page: page.name,
)
def test_the_commands_of_a_local_page_run(page: Page, tmp_path: Path, prepared: Path) -> None:
    run(page, tmp_path / "page", prepared)


@pytest.mark.soak
def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    """All but `make`, which sets up this checkout."""
    prepare(tmp_path)
    blocks = [block for block in README.blocks("sh") if not block.startswith("make ")]
    assert blocks
    execute("\n".join(blocks), tmp_path)


COMMANDS = [
    (page.name, command)
    for page in (*PAGES, README)
    for language in ("console", "sh", "")
    for block in page.blocks(language)
    for command in shoal_commands(block)
]


def test_pages_have_commands() -> None:
    assert len(COMMANDS) > 50


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[f"{page}: {' '.join(words)}" for page, words in COMMANDS])
def test_a_command_of_a_page_has_options_that_exist(page: str, command: list[str]) -> None:
    try:
        parse(command_line, command)
    except click.UsageError as error:
        pytest.fail(f"{page}: shoal {' '.join(command)}: {error.format_message()}")


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
        _, subcommand, arguments = command.resolve_command(click.Context(command), arguments)
        assert subcommand is not None
        command = subcommand
    if "--config" in arguments:  # an earlier command of the page writes the file
        assert any("--config" in parameter.opts for parameter in command.params)
        place = arguments.index("--config")
        arguments = arguments[:place] + arguments[place + 2 :]
    if "--help" not in arguments:
        command.make_context("shoal", arguments)
