"""Golden files of messages belong to tests that exist."""

import json

from tests.messages import NAME, ROOT


def test_each_entry_belongs_to_a_test() -> None:
    golden_files = [*ROOT.glob(f"tests/**/{NAME}"), *ROOT.glob(f"packages/*/tests/{NAME}")]
    assert golden_files
    for path in golden_files:
        for file, entries in json.loads(path.read_text("utf-8")).items():
            text = (path.parent / file).read_text("utf-8")
            gone = [test for test in entries if f"def {test.partition('[')[0]}(" not in text]
            assert gone == [], f"{path}: remove these entries with `make messages`"
