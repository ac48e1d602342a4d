"""MkDocs hook that adds generated pages to the documentation site
(https://www.mkdocs.org/user-guide/configuration/#hooks).

On the site, a link from a document to a file outside `docs/` is replaced by the path of the linked file.
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

from tools import permissions, reference  # noqa: E402
from tools.fidelity import document as fidelity  # noqa: E402

PAGES: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": reference.commands,
    "reference/topology.md": reference.topology,
    "reference/shipped-topologies.md": reference.shipped_topologies,
    "reference/record.md": reference.record,
    "reference/permissions.md": permissions.page,
    "reference/fidelity.md": fidelity.page,
}
"""Generated pages: the path below `docs/`, and the function that returns the page in Markdown."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to the files of the site."""
    for path, make in PAGES.items():
        files.append(File.generated(config, path, content=make()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Return the page. Each link to a file outside `docs/` is replaced by the path of the linked file."""
    folder = Path(config.docs_dir) / Path(page.file.src_uri).parent

    def linked(match: re.Match[str]) -> str:
        path = Path(os.path.normpath(folder / match[2]))
        return match[0] if path.is_relative_to(config.docs_dir) else f"{match[1]} (`{path.relative_to(ROOT)}`)"

    return re.sub(r"\[([^\]]*)\]\(((?![a-z]+:|#)[^)#]+)[^)]*\)", linked, markdown)
