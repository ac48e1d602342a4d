"""Threads return results in the order of their parts, and raise every error."""

import threading

import pytest
import torch

from tests.waiting import PATIENCE
from trainer.computing.threads import Threads


@pytest.mark.parametrize("count", [1, 2, 4])
def test_results_come_in_the_order_of_the_parts(count: int) -> None:
    assert Threads(count).map(lambda part: part * part, range(7)) == [0, 1, 4, 9, 16, 25, 36]
    assert Threads(count).map(lambda part: part, []) == []


def test_parts_are_computed_at_once_and_the_first_by_the_caller() -> None:
    together = threading.Barrier(3, timeout=PATIENCE)

    def meet(_part: int) -> tuple[str, int]:
        together.wait()
        return threading.current_thread().name, torch.get_num_threads()

    names, threads = zip(*Threads(3).map(meet, range(3)), strict=True)
    assert names[0] == threading.current_thread().name
    assert len(set(names)) == 3
    assert threads[1:] == (1, 1)


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_any_part_is_raised_when_all_have_ended(failing: int) -> None:
    ended = []

    def work(part: int) -> None:
        if part == failing:
            raise ValueError(f"part {part}")
        ended.append(part)

    with pytest.raises(ValueError, match=f"part {failing}"):
        Threads(2).map(work, [0, 1])
    assert ended == [1 - failing]
