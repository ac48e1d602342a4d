"""The notebook runs completely on texts in a bucket."""

import os
import re
from pathlib import Path
from typing import Any

import boto3
import pytest

from shoal.demo.reviews import write_reviews

NOTEBOOK = Path(__file__).parents[2] / "examples" / "reviews.ipynb"

pytestmark = pytest.mark.soak


def texts_of(cell: Any) -> str:
    return "\n".join(each.get("text") or each["data"].get("text/plain", "") for each in cell["outputs"])


def test_the_notebook_runs_on_a_bucket(aws, tmp_path, monkeypatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    write_reviews(tmp_path / "reviews.json", texts=2000)
    boto3.client("s3").create_bucket(Bucket="my-reviews")
    boto3.client("s3").upload_file(str(tmp_path / "reviews.json"), "my-reviews", "yelp/reviews.json")
    for name, value in {**aws.environment, "REVIEWS": "s3://my-reviews/yelp/", "OUTPUT": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", os.fspath(NOTEBOOK.parents[1]))
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    assert all(not cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"), "clear its outputs"
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    accuracy = re.search(r"'accuracy': (0\.\d+)", texts_of(code[2]))
    assert accuracy is not None
    assert float(accuracy[1]) > 0.8
    drawn = [each["data"]["text/html"] for each in code[4]["outputs"]]
    assert len(drawn) > 3
    assert all("<svg" in each and "--c1: #0072b2" in each for each in drawn)
    assert len(re.findall(r"^[01]\.\d\d  ", texts_of(code[5]), re.MULTILINE)) == 2
