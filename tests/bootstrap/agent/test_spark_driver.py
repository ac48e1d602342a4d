"""How far a driver of Spark is, by answers of its REST API: those of Spark 3.5, and others."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from bootstrap.agent.spark_driver import tasks

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


def test_the_tasks_of_all_stages_are_counted_also_of_those_that_wait(driver: Driver) -> None:
    driver.has(stage("PENDING", 4, 0), stage("ACTIVE", 12, 3), stage("COMPLETE", 5, 5))
    assert tasks(driver.server_port) == (8, 21)


def test_of_stages_that_failed_or_are_skipped_only_the_tasks_that_are_done_are_counted(driver: Driver) -> None:
    driver.has(stage("FAILED", 12, 7), stage("ACTIVE", 5, 1), stage("SKIPPED", 4, 0))
    assert tasks(driver.server_port) == (8, 12)


def test_a_driver_on_yarn_is_asked_through_yarns_proxy(driver: Driver) -> None:
    driver.has(stage("ACTIVE", 12, 3))
    for path, answer in list(driver.answers.items()):
        driver.answers[f"/proxy/{APPLICATION}{path}"] = answer
        driver.answers[path] = f"/proxy/{APPLICATION}{path}"
    assert tasks(driver.server_port) == (3, 12)


@pytest.mark.parametrize(
    "answer",
    [
        "Spark is starting up. Please wait a while until it's ready.",
        "[]",
        "{}",
        "[1]",
        "[{}]",
        '[{"id": 5}]',
        '[{"id": "../../elsewhere"}]',
        '[{"id": "a"}, {"id": "b"}]',
    ],
)
def test_a_driver_that_does_not_tell_now_counts_nothing(driver: Driver, answer: str) -> None:
    driver.answers["/api/v1/applications"] = answer
    assert tasks(driver.server_port) is None


@pytest.mark.parametrize("answer", ["", "{}x", '{"a": 1}', "[[]]", '[{"status": "ACTIVE", "numTasks": "many"}]', "7"])
def test_stages_that_cannot_be_read_count_nothing(driver: Driver, answer: str) -> None:
    driver.answers[STAGES] = answer
    assert tasks(driver.server_port) is None


def test_a_driver_that_is_gone_counts_nothing(driver: Driver) -> None:
    driver.shutdown()
    driver.server_close()
    assert tasks(driver.server_port) is None
