"""How far a driver of Spark is, by answers of its REST API: those of Spark 3.5, and others."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from bootstrap.agent.job_progress import driver_tasks

APPLICATION = "application_1700000000000_0012"
STAGES = f"/api/v1/applications/{APPLICATION}/stages"


def stage(status: str, total: int, done: int) -> dict[str, object]:
    """What is read of a stage, and some of what is not."""
    return {"status": status, "stageId": 0, "attemptId": 0, "numTasks": total, "numCompleteTasks": done, "rddIds": [2]}


class Driver(ThreadingHTTPServer):
    """Answers what it is given, by paths; a path that it is given as an answer is where it sends whoever asks."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.answers: dict[str, str] = {
            "/api/v1/applications": json.dumps([{"id": APPLICATION, "name": "shoal 0123456789ab: encode"}])
        }

    def has(self, *stages: dict[str, object]) -> None:
        self.answers[STAGES] = json.dumps(stages)


class Answering(BaseHTTPRequestHandler):
    server: Driver

    def do_GET(self) -> None:
        answer = self.server.answers.get(self.path)
        moved = answer is not None and answer.startswith("/")
        self.send_response(404 if answer is None else 302 if moved else 200)
        if moved:
            self.send_header("Location", str(answer))
        self.end_headers()
        self.wfile.write((answer or "").encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def driver() -> Iterator[Driver]:
    with Driver() as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    ("stages", "counted"),
    [
        ([("PENDING", 4, 0), ("ACTIVE", 12, 3), ("COMPLETE", 5, 5)], (8, 21)),  # also of those that wait
        ([("FAILED", 12, 7), ("ACTIVE", 5, 1), ("SKIPPED", 4, 0)], (8, 12)),  # of some only what is done
    ],
)
def test_the_tasks_of_all_stages_are_counted(
    driver: Driver, stages: list[tuple[str, int, int]], counted: tuple[int, int]
) -> None:
    driver.has(*(stage(*each) for each in stages))
    assert driver_tasks(driver.server_port) == counted


def test_a_driver_on_yarn_is_asked_through_yarns_proxy(driver: Driver) -> None:
    driver.has(stage("ACTIVE", 12, 3))
    for path, answer in list(driver.answers.items()):
        driver.answers[f"/proxy/{APPLICATION}{path}"] = answer
        driver.answers[path] = f"/proxy/{APPLICATION}{path}"
    assert driver_tasks(driver.server_port) == (3, 12)


@pytest.mark.parametrize(
    ("place", "answer"),
    [
        ("/api/v1/applications", "Spark is starting up. Please wait a while until it's ready."),
        *(
            ("/api/v1/applications", answer)
            for answer in ("[]", "{}", "[1]", "[{}]", '[{"id": 5}]', '[{"id": "../../elsewhere"}]')
        ),
        ("/api/v1/applications", '[{"id": "a"}, {"id": "b"}]'),
        *((STAGES, answer) for answer in ("", "{}x", '{"a": 1}', "[[]]", "7")),
        (STAGES, '[{"status": "ACTIVE", "numTasks": "many"}]'),
    ],
)
def test_a_driver_that_does_not_tell_now_counts_nothing(driver: Driver, place: str, answer: str) -> None:
    driver.answers[place] = answer
    assert driver_tasks(driver.server_port) is None


def test_a_driver_that_is_gone_counts_nothing(driver: Driver) -> None:
    driver.shutdown()
    driver.server_close()
    assert driver_tasks(driver.server_port) is None
