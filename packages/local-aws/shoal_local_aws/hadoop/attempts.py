"""Runs the attempts of a job's tasks, and kills some of the attempts if a fault requests it.

On a cluster, two attempts of a task may run at once, and any attempt may be killed at any time. A killed attempt does
not count as a failure of its task.
"""

import itertools
import random
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from threading import Timer

from shoal_local_aws.faults.kinds import AttemptFaults
from shoal_local_aws.hadoop.job_options import whole_number
from shoal_local_aws.hadoop.tasks import AttemptControl, HadoopTask, KilledError, TaskError

_MOST_KILLS = 3  # for each task, so that every job completes


class Attempts:
    """Runs the tasks of one job, each in as many attempts as it needs.

    Args:
        properties: Configuration of the job.
        faults: Injected faults for attempts.
        report: Function that is called with a message for each attempt that did not succeed.
    """

    def __init__(self, properties: Mapping[str, str], faults: AttemptFaults, report: Callable[[str], None]) -> None:
        self._properties = properties
        self._faults = faults
        self._report = report
        self._controls: set[AttemptControl] = set()
        self._abandoned = False

    def chance(self, name: str) -> random.Random:
        """Return the random generator of a task or an attempt. It has the same seed in every run of the job."""
        return random.Random(f"{self._faults.seed} {'_'.join(name.split('_')[3:])}")  # noqa: S311

    def abandon(self) -> None:
        """Kill all running attempts, and start no more."""
        self._abandoned = True
        for control in tuple(self._controls):
            control.kill()

    def run_until_success(self, task: HadoopTask, kind: str, once: Callable[[str, AttemptControl], None]) -> str:
        """Run a task of a kind (`map` or `reduce`), and return the name of the successful attempt.

        `once` runs one attempt, given its name and a control that can kill it. Raises TaskError if the task has failed
        in as many attempts as the job allows.
        """
        limit = whole_number(self._properties, f"mapreduce.{kind}.maxattempts", 4)
        speculative = self._properties.get(f"mapreduce.{kind}.speculative", "true") != "false"
        chance = self.chance(task.name)
        names = (f"{task.name.replace('task_', 'attempt_', 1)}_{number}" for number in itertools.count())
        doubled = speculative and chance.random() < self._faults.doubled
        failures, kills = 0, 0
        while failures < limit:
            if self._abandoned:
                raise KilledError(f"Task {task.name} was killed with its job")
            racing = list(itertools.islice(names, 2 if doubled else 1))
            doubled = False
            to_kill = [name for name in racing if chance.random() < self._faults.killed][: _MOST_KILLS - kills]
            kills += len(to_kill)
            ended = self._race(racing, to_kill, once, chance)
            for name, error in ended:
                killed = isinstance(error, KilledError)
                failures += error is not None and not killed
                if error is not None and (
                    killed or failures < limit
                ):  # Hadoop's client does not print the last failure
                    self._report(f"Task Id : {name}, Status : {'KILLED' if killed else 'FAILED'}\nError: {error}")
            if ended[0][1] is None:
                return ended[0][0]
        raise TaskError(f"Task {task.name} failed {limit} times")

    def _race(
        self, racing: list[str], to_kill: list[str], once: Callable[[str, AttemptControl], None], chance: random.Random
    ) -> list[tuple[str, TaskError | None]]:
        """Run several attempts at the same time. Return their names and errors, successful attempts (None) first."""
        controls = {name: AttemptControl() for name in racing}
        self._controls.update(controls.values())
        if self._abandoned:  # the job was abandoned since the last check
            self.abandon()
        timers = [Timer(chance.uniform(0, self._faults.within), controls[name].kill) for name in to_kill]
        starts = [0.0, *(chance.uniform(0, self._faults.within) for _ in racing[1:])]

        def start(name: str, after: float) -> None:
            controls[name].killed_event.wait(after)
            once(name, controls[name])

        ended: list[tuple[str, TaskError | None]] = []
        try:
            with ThreadPoolExecutor(len(racing)) as pool:
                futures: dict[Future[None], str] = {
                    pool.submit(start, name, after): name for name, after in zip(racing, starts, strict=True)
                }
                for timer in timers:
                    timer.start()
                for future in as_completed(futures):
                    ended.append((futures[future], _outcome(future)))
                    if ended[-1][1] is None:
                        for control in controls.values():
                            control.kill()
        finally:
            for timer in timers:
                timer.cancel()
            self._controls.difference_update(controls.values())
        return sorted(ended, key=lambda end: end[1] is not None)


def _outcome(future: "Future[None]") -> TaskError | None:
    try:
        future.result()
    except TaskError as error:
        return error
    return None
