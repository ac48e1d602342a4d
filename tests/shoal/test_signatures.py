"""What Shoal offers to other programs changes only with a line in the changelog, and all of it is on one page."""

import importlib
import inspect

import pytest

import shoal
import shoal.balance
import shoal.cdk
import shoal.testing
from common.errors import UsageError
from tools.signatures import ROOT, Announced, announce, announced, changed, public_names, signatures


@pytest.fixture(scope="module")
def now() -> dict[str, list[str]]:
    """The signatures in the code."""
    return signatures()


def test_a_signature_changes_with_a_line_in_the_changelog_alone(now: dict[str, list[str]]) -> None:
    assert not changed(announced(), now), "write it in CHANGELOG.md, and then: python -m tools.signatures"
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert announce(announced(), now, changelog) == announced()
    assert not [
        name for name, each in announced().items() if not all(entry in changelog for entry in each["changelog"])
    ]


def test_all_that_is_offered_is_on_the_page() -> None:
    packages = (shoal, shoal.balance, shoal.cdk, shoal.testing)
    offered = {f"{package.__name__}.{name}" for package in packages for name in package.__all__}
    assert offered - set(public_names()) == set()


@pytest.mark.parametrize("name", public_names())
def test_a_public_name_can_be_imported_and_says_what_it_takes_and_raises(name: str) -> None:
    module, _, last = name.rpartition(".")
    found = getattr(importlib.import_module(module), last)
    text = found.__doc__ or ""
    assert text
    if inspect.isfunction(found):
        assert [each for each in inspect.signature(found).parameters if f" {each}: " not in text] == []
        assert " Raises:\n" in text


def test_what_is_new_of_a_name_needs_an_entry_of_its_own() -> None:
    one = {"shoal.train": ["train(data: Path) -> dict"]}
    two = {"shoal.train": ["train(data: Path, ranks: int = 1) -> dict"]}
    entry = "- `shoal.train` trains."
    record = announce({}, one, f"### Added\n\n{entry}\n")
    assert record == {"shoal.train": Announced(signature=one["shoal.train"], changelog=[entry])}
    with pytest.raises(UsageError, match=r"shoal\.train has another signature"):
        announce(record, two, f"### Added\n\n{entry}\n")
    with pytest.raises(UsageError, match=r"shoal\.train has another signature"):
        announce(record, {}, f"### Added\n\n{entry}\n")
    more = f"{entry}\n- `shoal.train` has\n  `ranks`.\n"
    assert announce(record, two, more)["shoal.train"]["changelog"][1] == "- `shoal.train` has\n  `ranks`."
    assert announce(record, {}, more) == {}


def test_parameters_kinds_and_members_are_part_of_a_signature(now: dict[str, list[str]]) -> None:
    assert now["shoal.train"][0].endswith("output: Path | str, *, ranks: int = 1, **options: Any) -> dict[str, Any]")
    assert [line for line in now["shoal.Model"] if line.startswith("predict(")]
