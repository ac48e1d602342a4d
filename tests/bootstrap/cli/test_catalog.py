"""`shoal catalog` as a person types it: the table, and today's prices, which AWS reports only with credentials."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bootstrap.aws import account
from bootstrap.cli.main import main
from infra import catalog
from tests.bootstrap.lifecycle.pricing import ASKED_OF_EC2, NEWEST, NO_CREDENTIALS, Aws, machines, same


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    shutil.copy(catalog.PRICES / "us-east-1.yaml", tmp_path)
    yield tmp_path
    catalog.price_lists.cache_clear()


@pytest.fixture
def refresh(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs `shoal catalog --refresh` on a copy of the lists, with AWS asking so much for a g5.xlarge."""
    monkeypatch.setattr(catalog, "PRICES", folder)

    def run(*options: str, price: float) -> tuple[dict[str, Any], str]:
        with Aws("us-east-1") as aws:
            aws.sells("AmazonEC2", ASKED_OF_EC2, machines(same(g5_xlarge=price)))
            aws.offers(list(same()))
            aws.sells(
                "ElasticMapReduce", {"softwareType": "EMR"}, machines(catalog.prices("us-east-1", folder=folder).emr)
            )
            aws.sells_the_rest()
            monkeypatch.setattr(account, "connect", lambda: aws)
            assert main(["catalog", "--refresh", "--json", *options]) == 0
        said = capsys.readouterr()
        return json.loads(said.out), said.err

    return run


def test_a_dry_run_shows_what_differs_and_writes_nothing(refresh: Any, folder: Path) -> None:
    before = (folder / "us-east-1.yaml").read_bytes()
    found, said = refresh("--dry-run", price=0.9)
    assert {"item": "g5.xlarge", "before": NEWEST.hourly("g5.xlarge"), "after": 0.9} in found["changes"]
    assert found["written"] is None
    assert "nothing was written (--dry-run)" in said
    assert (folder / "us-east-1.yaml").read_bytes() == before


def test_a_refresh_writes_what_differs_and_a_second_one_nothing(refresh: Any, folder: Path) -> None:
    found, said = refresh(price=0.9)
    assert found["written"] == str(folder / "us-east-1.yaml")
    assert f"prices differ from the list of {found['before']}" in said
    written = (folder / "us-east-1.yaml").read_bytes()
    again, said = refresh(price=0.9)
    assert (again["changes"], again["written"]) == ([], None)
    assert "is still right; nothing was written" in said
    assert (folder / "us-east-1.yaml").read_bytes() == written


def test_a_refusal_of_aws_is_one_sentence_and_nothing_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(catalog, "PRICES", folder)
    before = (folder / "us-east-1.yaml").read_bytes()
    with Aws("us-east-1") as aws:
        aws.refuses_prices()
        monkeypatch.setattr(account, "connect", lambda: aws)
        assert main(["catalog", "--refresh"]) == 1
    assert "AccessDeniedException" in capsys.readouterr().err
    assert (folder / "us-east-1.yaml").read_bytes() == before


def shoal(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    outside = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return subprocess.run(
        ["shoal", *arguments],
        capture_output=True,
        text=True,
        env={**outside, **NO_CREDENTIALS, **environment},
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({}, "prices need them; run `aws configure`"),
        (
            {
                "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": "test",
                "AWS_ENDPOINT_URL": "http://127.0.0.1:4566",
            },
            "http://127.0.0.1:4566 is an emulator, which has no prices; unset AWS_ENDPOINT_URL to ask AWS",
        ),
    ],
)
def test_without_aws_a_refresh_fails_with_a_sentence(environment: dict[str, str], sentence: str) -> None:
    said = shoal("catalog", "--refresh", **environment)
    assert said.returncode == 1
    assert said.stderr.rstrip().endswith(sentence)
    assert "Traceback" not in said.stderr


def test_the_table_has_a_line_for_each_type_and_names_the_price_list() -> None:
    said = shoal("catalog")
    types, gone = (part.splitlines() for part in said.stdout.split("\n\n"))
    assert len(types) == 1 + len(catalog.catalog().types)
    (found,) = (line for line in types if line.startswith("p3.8xlarge"))
    assert found.split() == ["p3.8xlarge", "32", "244", "4", "x", "V100,", "16", "GiB", "7.0", "12.24"]
    assert len(gone) == 1 + sum(each.retired is not None for each in catalog.catalog().types.values())
    (retired,) = (line for line in gone if line.startswith("p3.8xlarge"))
    assert retired.split() == ["p3.8xlarge", "2025-12-20", "g6e.12xlarge"]
    assert f"prices of us-east-1, {NEWEST.date}" in said.stderr


def test_the_table_can_have_one_kind_only_and_be_json() -> None:
    gpus, emr = (json.loads(shoal("catalog", "--json", kind).stdout)["types"] for kind in ("--gpu", "--emr"))
    assert all(row["gpu"] for row in gpus)
    assert all(row["emr_hourly"] for row in emr)
    assert {row["name"] for row in [*gpus, *emr]} == set(catalog.catalog().types)
    (found,) = (row for row in gpus if row["name"] == "g3.4xlarge")
    assert (found["hourly"], found["retired"]["successor"]) == (1.14, "g5.xlarge")


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["--region", "us-est-1"], 2, "'us-est-1' is not an AWS region; did you mean "),
        (["--region", "eu-north-1"], 1, "there is no price list for eu-north-1, only for us-east-1"),
        (["--dry-run"], 2, "--dry-run goes with --refresh"),
        (["--gpu", "--emr"], 2, "--gpu and --emr contradict each other"),
    ],
)
def test_wrong_use_is_a_sentence(arguments: list[str], status: int, sentence: str) -> None:
    said = shoal("catalog", *arguments)
    assert said.returncode == status
    assert sentence in said.stderr
    assert "Traceback" not in said.stderr
