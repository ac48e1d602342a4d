"""`shoal extend` where there is nothing to extend."""

import pytest

from bootstrap.cli.main import main
from bootstrap.lifecycle import status
from bootstrap.lifecycle.status import Status


@pytest.mark.parametrize(
    ("state", "advice"),
    [
        ("DELETE_IN_PROGRESS", "'mine' is being deleted (DELETE_IN_PROGRESS) and cannot be extended; deploy it again"),
        ("CREATE_IN_PROGRESS", "'mine' (CREATE_IN_PROGRESS) has no guard, which would extend it; wait until it is"),
    ],
)
def test_without_a_guard_the_advice_follows_the_stacks_state(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: str, advice: str
) -> None:
    now = Status(name="mine", stack={"StackStatus": state}, groups=[], cluster=None, guard=None)
    monkeypatch.setattr(status, "read_status", lambda *_: now)
    assert main(["extend", "mine", "--hours", "1", "--region", "us-east-1"]) == 1
    assert advice in capsys.readouterr().err
