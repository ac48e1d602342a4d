"""Training runs on hosts that share only a bucket, each with its own credentials."""

import json
import signal
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

import boto3
import pytest
from shoal_local_aws.permissions.credentials import USER

from common.names import RUNS
from shoal.backends.hosts import store_of
from shoal.ssh.connection import LostError
from shoal.ssh.group import HostGroup
from shoal.ssh.hosts_file import HostsFile
from tests.bootstrap.node.stores import check_store
from tests.secrets import places_of
from tests.shoal.backends.on_nodes import made_dataset
from tests.shoal.ssh.on_hosts import LONG, Training
from tests.ssh_hosts import ssh_hosts
from tests.waiting import until

_BUCKET = "of-hosts"
_OF_HOSTS = ("AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION", "AWS_EC2_METADATA_DISABLED", "NO_PROXY", "no_proxy")


@pytest.fixture(scope="module")
def bucket(aws):
    boto3.client("s3").create_bucket(Bucket=_BUCKET)
    return f"s3://{_BUCKET}"


@contextmanager
def hosts_with(aws, root, **variables):
    """Yield hosts with access to the bucket and with these environment variables."""
    reach = {name: aws.environment[name] for name in _OF_HOSTS}
    with ssh_hosts(root, variables={**reach, **variables}) as made:
        made.file.write_text(made.file.read_text().replace(f"folder={made.folder}", f"folder=s3://{_BUCKET}"))
        yield made


@pytest.fixture
def hosts(bucket, aws, tmp_path_factory):
    keys = {name: aws.environment[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    with hosts_with(aws, tmp_path_factory.mktemp("hosts"), **keys) as made:
        yield made


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return made_dataset(tmp_path_factory.mktemp("data") / "dataset.h5")


def store_at(address):
    return store_of(HostGroup(HostsFile(path=Path("hosts"), folder=address, hosts=())))


def until_there_is(pattern, training):
    """Wait until the bucket has an object of this pattern in the folder of a run."""

    def found():
        assert training.process.poll() is None, training.process.communicate()
        return any(fnmatch(key, f"{RUNS}*/{pattern}") for key in store_at(f"s3://{_BUCKET}").list(RUNS))

    until(found)


@pytest.mark.soak
def test_hosts_train_with_a_bucket_instead_of_a_folder(hosts, bucket, aws, dataset, tmp_path, monkeypatch):
    of_command = boto3.client("iam").create_access_key(UserName=USER)["AccessKey"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", of_command["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", of_command["SecretAccessKey"])
    training = Training(hosts, dataset, tmp_path / "out", *LONG)
    until_there_is("checkpoints/step-*", training)
    secrets = (of_command["SecretAccessKey"], (hosts.home / ".ssh" / "id_ed25519").read_text().splitlines()[1])
    places = (aws.folder, tmp_path, *hosts.homes)
    assert [places_of(each, *places) for each in secrets] == [[], []]
    training.process.send_signal(signal.SIGINT)
    assert training.ended(130)["stopped"] is True
    again = ("--epochs", "20", "--resume")
    left = Training(hosts, dataset, tmp_path / "out", *again, "--detach").ended()
    found = Training(hosts, dataset, tmp_path / "out", *again).ended()
    assert f"following run {left['run']}, which the same command started" in found["errors"]
    assert (found["stopped"], found["rows_seen"]) == (False, 20 * found["rows"])
    assert found["run"] == f"{bucket}/{RUNS}{left['run']}/"
    assert json.loads((tmp_path / "out" / "model" / "config.json").read_text())
    assert list(hosts.folder.iterdir()) == []
    assert [places_of(each, *places) for each in secrets] == [[], []]


def test_a_bucket_works_as_a_store(bucket, aws, tmp_path):
    assert store_at(bucket).name == bucket
    check_store(store_at(bucket), store_at(bucket), tmp_path / "file")


def test_an_unusable_bucket_is_reported(bucket, aws, tmp_path, monkeypatch, messages):
    path = tmp_path / "file"
    path.write_text("1")
    with messages.raises(LostError):
        store_at("s3://is-not-there").put(path, "datasets/a")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"{aws.endpoint}/")  # clients are kept by endpoint
    with messages.raises(LostError):
        store_at(bucket).read("requests/a.json")
