"""Preprocessing on a cluster of the emulator: followed, continued, cancelled, and run with a faulty S3."""

from dataclasses import replace

import boto3
import pytest
from shoal_local_aws.faults.kinds import AttemptFaults, CutConnection, S3Error, Throttled
from shoal_local_aws.hadoop import yarn

from common import names
from common.errors import DataError, ShoalError
from common.progress import ProgressReporter
from corpus.dataset_settings import DEFAULT
from corpus.reading.sources import Inputs
from jobs.local import preprocess_locally as preprocess_here
from jobs.plan import PLAN_NAME, RESULT
from shoal.aws.retry import Abandoned
from shoal.demo.reviews import write_reviews
from shoal.interrupt import Detached
from shoal.preprocessing.attaching import StartedPreprocessing, attach
from shoal.preprocessing.cluster import EmrCluster
from shoal.preprocessing.preprocess import preprocess_on_deployment
from tests.shoal.preprocessing.emr_clusters import deployment, make_buckets

pytestmark = pytest.mark.soak

DATA = "data"
STEPS = ["preprocess"]


class There:
    """Deployment with a cluster, and the messages and steps of preprocessing on it."""

    def __init__(self, aws):
        self.aws = aws
        self.s3, self.emr = make_buckets(), boto3.client("emr")
        self.deployment = deployment()
        self.cluster = self.deployment.output(names.OUTPUT_CLUSTER_ID)

    def preprocess(self, path, **settings):
        limit = settings.pop("max_malformed", 0.2)
        launch = {name: settings.pop(name, False) for name in ("detach", "force")}
        self.messages = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ProgressReporter, "note", lambda _, text: self.messages.append(text))
            return preprocess_on_deployment(
                self.deployment,
                Inputs(files=(str(path),)),
                settings=replace(DEFAULT, **settings),
                max_malformed=limit,
                **launch,
            )

    def steps(self):
        """Return the states of all steps by id, the oldest first."""
        return {step["Id"]: step["Status"]["State"] for step in self._steps()}

    def names(self):
        return [step["Name"].partition(": ")[2] for step in self._steps()]

    def _steps(self):
        return self.emr.list_steps(ClusterId=self.cluster)["Steps"][::-1]

    def work(self):
        """Return the keys of work files, without those of finished runs."""
        keys = [each["Key"] for each in self.s3.list_objects_v2(Bucket=DATA, Prefix="work/").get("Contents", ())]
        return [key for key in keys if not key.endswith((RESULT, PLAN_NAME))]


@pytest.fixture(scope="module")
def there(aws):
    return There(aws)


@pytest.fixture
def reviews(tmp_path, request):
    """Reviews that differ for each test, so that no test continues the work of another."""
    path = tmp_path / f"{request.node.name}.json"
    write_reviews(path, texts=1_500, seed=len(request.node.name))
    return path


class Impatient(ProgressReporter):
    """Reporter that raises Ctrl-C in a stage."""

    def __init__(self, stage):
        self._wanted, self._now = stage, ""

    def stage(self, name, total=0, unit=None):
        self._now = name

    def tick(self):
        if self._now == self._wanted:
            raise KeyboardInterrupt


def test_a_refusal_removes_all_files_and_a_forgotten_claim_delays_only_for_a_while(there, reviews, monkeypatch):
    before, kept = len(there.steps()), there.work()
    noisy = reviews.with_name("noisy.json")
    noisy.write_bytes(reviews.read_bytes() + b"{\n" * 10)
    with pytest.raises(DataError, match="--max-malformed"):
        there.preprocess(noisy, max_malformed=0.0)
    assert list(there.steps().values())[before:] == ["FAILED"]
    assert there.work() == kept
    name = there._steps()[-1]["Name"].partition(":")[0].removeprefix("shoal ")
    # the claim of a command that was killed before it submitted
    there.s3.put_object(Bucket=DATA, Key=f"work/{name}/claim", Body=b"another")
    monkeypatch.setattr("shoal.preprocessing.preprocess._CLAIM_SECONDS", 0.1)
    made = there.preprocess(noisy)
    assert "another command is about to start run " in there.messages[0]
    assert there.work() == kept
    assert made.counts["malformed"] == 19  # 9 of them are in the reviews


def test_ctrl_c_cancels_the_step_and_removes_all_files(there, reviews):
    kept = there.work()
    before = len(there.steps())
    with pytest.raises(KeyboardInterrupt):
        there.preprocess(reviews)
    assert "`shoal destroy mine` deletes the deployment" in there.messages[-1]
    assert list(there.steps().values())[before:] == ["CANCELLED"]
    assert there.work() == kept
    assert "Contents" not in there.s3.list_objects_v2(Bucket=DATA, Prefix="requests/")
    assert yarn.applications(there.aws.folder / "clusters" / there.cluster) == []


def test_steps_that_aws_does_not_cancel_keep_their_files(there, reviews, monkeypatch):
    def pressed_again(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(EmrCluster, "cancel", pressed_again)
    kept = there.work()
    with pytest.raises(Abandoned):
        there.preprocess(reviews)
    assert "continues" in there.messages[-1]
    assert there.work() != kept
    there.emr.cancel_steps(ClusterId=there.cluster, StepIds=list(there.steps()))


def test_ctrl_c_leaves_the_steps_of_another_command(there, reviews):
    with pytest.raises(Detached):
        there.preprocess(reviews, detach=True)
    submitted = list(there.steps())
    with pytest.raises(KeyboardInterrupt):
        there.preprocess(reviews)
    following, leaving = there.messages
    assert following.startswith("following run ")
    assert "continues" in leaving
    assert there.preprocess(reviews).counts["lines"]
    assert list(there.steps()) == submitted


def test_a_faulty_cluster_and_s3_give_the_dataset_of_this_machine_and_leave_nothing_else(there, reviews, tmp_path):
    before, kept = len(there.steps()), there.work()
    here = preprocess_here(Inputs(files=(str(reviews),)), str(tmp_path / "here"), max_malformed=0.2)
    faults = (
        AttemptFaults(killed=0.3, doubled=0.3, within=1.0),
        Throttled(service="s3", share=0.1),
        CutConnection(share=0.3, least=1 << 12),
        S3Error(operation="PutObject", share=0.1),
        S3Error(operation="GetObject", share=0.05),
    )
    with there.aws.faults.during(*faults):
        made = there.preprocess(reviews)
    assert (made.digest, made.counts) == (here.digest, here.counts)
    assert there.names()[before:] == STEPS
    assert made.dataset == f"s3://{DATA}/datasets/{made.digest}/dataset.h5"
    assert there.work() == kept


def test_repeated_work_returns_its_dataset_and_runs_nothing(there, reviews):
    first = there.preprocess(reviews)
    ran = len(there.steps())
    assert there.preprocess(reviews) == first
    assert [each.partition(":")[0] for each in there.messages] == ["nothing to do"]
    assert len(there.steps()) == ran
    assert there.preprocess(reviews, force=True) == first
    assert there.names()[ran:] == STEPS


def test_detached_steps_can_be_followed_from_elsewhere_and_their_result_found_later(there, reviews):
    with pytest.raises(Detached) as left:
        there.preprocess(reviews, detach=True)
    made = attach(there.deployment, None)
    assert made.counts["lines"] == len(reviews.read_bytes().splitlines())
    assert attach(there.deployment, str(left.value)) == made
    with pytest.raises(ShoalError, match="0123456789ab is neither active nor finished"):
        attach(there.deployment, "0123456789ab")
    with pytest.raises(ShoalError, match=r"^nothing runs on 'mine': "):
        StartedPreprocessing(there.deployment, None).stop()
