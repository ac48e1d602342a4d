"""Cancellation of a step on an EMR cluster, so that nothing writes to the run's folder afterwards."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.node.documents import MAX_ERROR_LENGTH, Cancellation
from common.errors import DataError, ShoalError
from common.progress import reporter
from corpus.reading.s3 import S3Path, put, read_text
from shoal.aws import objects
from shoal.aws.retry import Abandoned, retrying
from shoal.interrupt import Detached
from shoal.preprocessing.cluster import EmrCluster

_CANCEL_SECONDS = 60
_ANSWER_SECONDS = 300
"""Maximum seconds until a step has stopped its work on YARN. The limit is long, because YARN's commands are slow on a
busy primary node."""
_PAUSE_SECONDS = 0.5


@contextmanager
def cancelling(cluster: EmrCluster, step_id: str, cancellation: Cancellation) -> Iterator[None]:
    """Cancel the step if the block raises an error. If the block raises an AWS error or Detached, it continues.

    The step must have been submitted with this launch's token. Raises Abandoned if the user interrupts again before
    AWS has answered; the step then continues. Raises ShoalError if some jobs of the step might still be running.
    """
    try:
        yield
    except (BotoCoreError, ClientError, Detached):
        raise  # the cluster continues, and the next command finds the step
    except BaseException:
        try:
            if retrying.unanswered:
                reporter().note(
                    "Shoal cancels the step as soon as AWS answers; to leave and let it continue, press Ctrl-C again"
                )
            cancel(cluster, step_id, cancellation)
        except KeyboardInterrupt as interrupt:
            raise Abandoned(interrupt) from None
        raise


def cancel(cluster: EmrCluster, step_id: str, cancellation: Cancellation) -> None:
    """Cancel the step if it has not ended, and wait until it writes nothing more.

    A running step first stops its own jobs, and then waits until EMR terminates it. Raises ShoalError if its jobs
    might still be running.
    """
    if not cluster.is_unfinished(step_id):
        return
    place = S3Path(cluster.data_bucket, cancellation.key)
    retrying(partial(put, cluster.s3, place, cancellation.to_json().encode()))
    if cluster.is_unfinished(step_id, "PENDING"):
        cluster.cancel(step_id)
    answer = _answer(cluster, step_id, cancellation)
    if cluster.is_unfinished(step_id):
        cluster.cancel(step_id, StepCancellationOption="TERMINATE_PROCESS")
    deadline = time.monotonic() + _CANCEL_SECONDS
    while cluster.is_unfinished(step_id) and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)
    retrying(partial(objects.remove, cluster.s3, place))
    if answer.error:
        raise ShoalError(
            f"the step of run {cancellation.run} is cancelled, but its jobs might continue on the cluster "
            f"{cluster.id}, which costs money until they end: {answer.error}"
        )


def _answer(cluster: EmrCluster, step_id: str, cancellation: Cancellation) -> Cancellation:
    """Wait until the running step has stopped its work, and return its answer. If the step has ended, return the
    cancellation itself. If the step does not answer in time, the returned cancellation has an error."""
    deadline = time.monotonic() + _ANSWER_SECONDS
    while cluster.is_unfinished(step_id):
        if time.monotonic() > deadline:
            return replace(cancellation, error=f"the step has not answered for {_ANSWER_SECONDS} seconds")
        place = S3Path(cluster.data_bucket, cancellation.answer_key)
        if text := retrying(partial(read_text, cluster.s3, place)):
            try:
                answer = Cancellation.from_json(text)
            except DataError as error:
                return replace(cancellation, error=f"Shoal cannot read its answer: {error}"[:MAX_ERROR_LENGTH])
            if answer.token == cancellation.token:
                return answer
        time.sleep(_PAUSE_SECONDS)
    return cancellation
