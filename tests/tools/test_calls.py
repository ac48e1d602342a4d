from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.calls import calls_in

TABLES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("calls.yaml").read_text("utf-8"))


@pytest.mark.parametrize("row", TABLES["sources"], ids=lambda row: row["case"])
def test_operations_are_found_in_the_code(row) -> None:
    assert sorted(f"{service} {operation}" for service, operation in calls_in(row["source"])) == row["found"]
