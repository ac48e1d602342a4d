"""The record of the emulator's fidelity has every operation that the code calls, and the page shows every fault."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from shoal_local_aws.faults import kinds

from tests.infra import test_authorization
from tests.infra.authorization import known_actions
from tools.fidelity import document
from tools.fidelity.calls import calls_in, find_calls


def test_the_record_has_every_operation_that_the_code_calls() -> None:
    measured = set(document.read()["operations"])
    assert {f"{service} {operation}" for service, operation in find_calls()} == measured, (
        "the code calls other operations than were measured: python -m tools.fidelity"
    )


def test_every_kind_of_fault_is_on_the_page() -> None:
    page = document.page()
    names = [name for name, kind in vars(kinds).items() if isinstance(kind, type) and name.strip("_") == name]
    assert len(names) > 20
    assert [name for name in names if name not in page and name != "Fault"] == []


TABLES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("fidelity.yaml").read_text("utf-8"))


@pytest.mark.parametrize("row", TABLES["sources"], ids=lambda row: row["case"])
def test_operations_are_found_in_the_code(row) -> None:
    assert sorted(f"{service} {operation}" for service, operation in calls_in(row["source"])) == row["found"]


@pytest.mark.lint
def test_the_emulator_checks_actions_that_iam_has() -> None:
    record = document.read()
    asked = {action for actions in record["operations"].values() for action in actions} | set(record["actions"])
    named = {*asked, *document.AWS_ACTIONS.values()} - set(test_authorization.TABLES["newer"])
    assert [action for action in sorted(named) if "*" not in action and not known_actions(action)] == []
