"""Pages of the documentation that a test runs, and the shell commands in them."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PREPARED = ("reviews", "dataset", "model", "checkout", "aws", "deployment")
"""Names that a page may use in its comment `<!-- prepare: NAME... -->`."""

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PREPARE = re.compile(r"^<!-- prepare: ([\w ]+) -->$", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """A page in Markdown with blocks of shell commands."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def prepare(self) -> tuple[str, ...]:
        """Files and services that must exist before the first block."""
        found = _PREPARE.search(self.path.read_text("utf-8"))
        return tuple(found[1].split()) if found else ()

    @property
    def needs_aws(self) -> bool:
        return not {"aws", "deployment"}.isdisjoint(self.prepare)

    @property
    def prose(self) -> str:
        """The page without its blocks."""
        return _BLOCK.sub("", self.path.read_text("utf-8"))

    @property
    def ends_deployment(self) -> bool:
        """True if the page destroys a deployment, which it shares with other pages."""
        return any(
            line.startswith("shoal destroy") and "--dry-run" not in line
            for line in "\n".join(self.blocks("sh")).splitlines()
        )

    def blocks(self, language: str) -> list[str]:
        """The blocks of one language, in their order."""
        found = _BLOCK.findall(self.path.read_text("utf-8"))
        return [block for of, block in found if of == language]


README = Page(ROOT / "README.md")


def pages() -> list[Page]:
    """The tutorials and how-to guides."""
    return [Page(path) for folder in ("tutorial", "how-to") for path in sorted((ROOT / "docs" / folder).glob("*.md"))]


def shoal_commands(block: str) -> Iterator[list[str]]:
    """The arguments of each `shoal` command in a block, which may start lines with `$ `."""
    joined = block.replace("\\\n", " ")
    for line in joined.splitlines():
        lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
        lexer.wordchars += ":,@%"
        command: list[str] = []
        for word in [*lexer, ";"]:
            if not set(word) <= set("();<>|&"):
                command.append(word)
                continue
            if command[:1] == ["shoal"]:
                yield command[1:]
            command = []
