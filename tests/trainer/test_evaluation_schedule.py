"""Schedule of evaluations in a run on a stream."""

from types import SimpleNamespace

from tests.corpus.stream.reading import Clock
from trainer import loop
from trainer.loop import EvaluationSchedule


def test_evaluation_takes_a_small_share_of_the_time_of_short_parts(monkeypatch):
    clock, judged = Clock(), []
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=clock))
    schedule = EvaluationSchedule()
    for part in range(25):
        if schedule.is_due():
            judged.append(part)
            with schedule.evaluating():
                clock.sleep(30)
        clock.sleep(61)
    assert judged == [0, 10, 20]
