"""The rows of `shoal costs`."""

from bootstrap.cli.costs import _billed
from bootstrap.lifecycle.bill import Bill


def test_a_bill_is_shown_by_service_the_dearest_first_without_parts_of_a_cent() -> None:
    services = {"Amazon S3": 0.004, "Amazon EMR": 1.25, "AWS KMS": 0.005, "Amazon EC2": 3.5}
    first, *rest = _billed(Bill(since="2026-01-02", services=services))
    assert first == ("billed by AWS", "$4.76 since 2026-01-02, a day late")
    assert [name.strip() for name, _ in rest] == ["Amazon EC2", "Amazon EMR", "AWS KMS"]


def test_without_a_bill_the_reason_stands_in_its_place() -> None:
    assert _billed(Bill(since="2026-01-02", services={}, why="nothing yet")) == [("billed by AWS", "nothing yet")]
