"""Parsing of hosts files; errors name the line."""

import string
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ShoalError
from common.names import INSTANCE
from shoal.ssh.hosts_file import read_hosts

WRONG = yaml.safe_load(Path(__file__).with_name("wrong_hosts.yaml").read_text())


def read(tmp_path, text):
    path = tmp_path / "hosts.txt"
    path.write_text(text)
    return read_hosts(path)


def test_options_of_a_host_override_common_options(tmp_path):
    found = read(
        tmp_path,
        "# our lab\nfolder=/srv/shoal\npython=/opt/venv/bin/python\n\nann@10.0.0.1 gpus=2\n"
        "gpu-2:2222 python=/usr/bin/python3.12 address=192.168.7.2  # behind a gateway\n",
    )
    assert found.folder == "/srv/shoal"
    assert [(each.label, each.gpus, each.address, each.python) for each in found.hosts] == [
        ("ann@10.0.0.1", 2, None, "/opt/venv/bin/python"),
        ("gpu-2:2222", None, "192.168.7.2", "/usr/bin/python3.12"),
    ]
    assert len({each.instance for each in found.hosts}) == 2
    assert all(INSTANCE.fullmatch(each.instance) for each in found.hosts)


@pytest.mark.parametrize(
    ("written", "folder"), [("s3://reviews", "s3://reviews"), ("s3://reviews/", "s3://reviews"), ("/srv//x/", "/srv/x")]
)
def test_the_shared_folder_is_normalised(tmp_path, written, folder):
    assert read(tmp_path, f"folder={written}\nann@h1\n").folder == folder


@pytest.mark.parametrize("file", WRONG.values(), ids=WRONG)
def test_an_invalid_hosts_file_is_refused_with_its_line(tmp_path, file, messages):
    with messages.raises(ShoalError):
        read(tmp_path, file)


def test_a_missing_hosts_file_is_reported(tmp_path, messages):
    with messages.raises(ShoalError):
        read_hosts(tmp_path / "none.txt")


@given(st.text(alphabet=string.printable, max_size=200))
def test_any_text_is_parsed_or_refused(tmp_path, text):
    path = tmp_path / "hosts.txt"
    path.write_text(text)
    try:
        found = read_hosts(path)
    except ShoalError:
        return
    assert all(each.name and not set(each.name) & set(" ;&|$`'\"") for each in found.hosts)
