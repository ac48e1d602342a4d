"""MkDocs hook that adds generated pages to the documentation site
(https://www.mkdocs.org/user-guide/configuration/#hooks).

The first page is the README with the list of all pages. Of a link to a file outside `docs/`, the path of the file
remains.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # MkDocs loads a hook as a file, so imports need this path

from tools import beliefs, permissions, reference  # noqa: E402

PAGES: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": reference.commands,
    "reference/topology.md": reference.topology,
    "reference/shipped-topologies.md": reference.shipped_topologies,
    "reference/instance-types.md": reference.instance_types,
    "reference/record.md": reference.record,
    "reference/permissions.md": permissions.page,
    "reference/beliefs.md": beliefs.page,
}
"""Generated pages: the path below `docs/`, and the function that returns the page in Markdown."""

_COMMENT = re.compile(r"\A<!--.*?-->\s*", re.DOTALL)
"""Comment before the heading of a page, which says what its commands need (tests/pages.py)."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to the files of the site."""
    for path, make in PAGES.items():
        files.append(File.generated(config, path, content=make()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_unused: object) -> str:
    """Return the page for the site. The README and the table of `docs/index.md` are the first page.

    A page begins with its heading, not with a comment: otherwise MkDocs makes a title from the name of the file.
    """
    docs = Path(config.docs_dir)
    here = docs / Path(page.file.src_uri).parent
    markdown = _COMMENT.sub("", markdown)
    if page.file.src_uri != "index.md":
        return _with_links(markdown, here, here, docs)
    readme, heading, _ = (ROOT / "README.md").read_text("utf-8").partition("## Documents\n")
    _, first_row, table = markdown.partition("| You want to ")
    return f"{_with_links(readme, ROOT, here, docs)}{heading}\n{_with_links(first_row + table, here, here, docs)}"


def _with_links(markdown: str, folder: Path, here: Path, docs: Path) -> str:
    """Return a text from `folder` with the links that it needs in a page in `here`.

    The README is the first page. Of a link to another file outside `docs`, the path of the file remains.
    """

    def linked(match: re.Match[str]) -> str:
        text, target, anchor = match.groups()
        path = Path(os.path.normpath(folder / target))
        path = docs / "index.md" if path == ROOT / "README.md" else path
        if not path.is_relative_to(docs):
            return f"{text} (`{path.relative_to(ROOT)}`)"
        return f"[{text}]({os.path.relpath(path, here)}{anchor})"

    return re.sub(r"\[([^\]]*)\]\(((?![a-z]+:|#)[^)#]+)([^)]*)\)", linked, markdown)
