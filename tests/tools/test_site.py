"""The documentation site: links, titles, and pages in a browser."""

import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.browser.browser import View, look
from tools.site import ROOT, on_page_markdown


def made(page: str, text: str) -> str:
    """Return the text of a page of the site."""
    return on_page_markdown(
        text,
        SimpleNamespace(file=SimpleNamespace(src_uri=page)),
        SimpleNamespace(docs_dir=str(ROOT / "docs")),
        files=None,
    )


@pytest.mark.parametrize(
    ("link", "there"),
    [
        ("[topology](../reference/topology.md#a)", "[topology](../reference/topology.md#a)"),
        ("[README](../../README.md#do-you-need-a-cluster)", "[README](../index.md#do-you-need-a-cluster)"),
        ("[faults](../../benchmarks/results/faults.md#b)", "faults (`benchmarks/results/faults.md`)"),
        ("[a site](https://example.com/a)", "[a site](https://example.com/a)"),
        ("[a section](#a)", "[a section](#a)"),
    ],
)
def test_a_link_leads_to_the_same_page_of_the_site(link, there) -> None:
    assert made("how-to/deploy.md", f"<!-- prepare: reviews -->\n# Deploy GPUs\n\n{link}\n") == (
        f"# Deploy GPUs\n\n{there}\n"
    )


def test_the_first_page_is_the_readme_with_the_list_of_all_pages() -> None:
    page = made("index.md", (ROOT / "docs/index.md").read_text())
    assert "make demo" in page
    assert "](report.png)" in page
    assert "](tutorial/first-model.md)" in page
    assert "README" not in re.sub(r"`packages/[a-z-]*/README.md`", "", page)
    assert page.count("\n| You want to | Read |") == 1


@pytest.mark.slow
def test_no_table_or_page_is_wider_than_its_window(tmp_path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True)
    pages = ("index.html", "how-to/recover.html", "reference/python.html", "reference/instance-types.html")
    views = [View(page=tmp_path / page, width=width) for page in pages for width in (1300, 390)]
    wide = [view for view, seen in zip(views, look(views), strict=True) if seen.scrolling or seen.sideways]
    assert wide == []
