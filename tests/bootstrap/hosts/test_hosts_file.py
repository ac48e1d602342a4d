"""A file of hosts says who trains, and where; what cannot be is named with its line."""

import re
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootstrap.agent.documents import INSTANCE
from bootstrap.hosts.hosts_file import HostsFile, read_hosts
from common.errors import ShoalError


def read(tmp_path: Path, text: str) -> HostsFile:
    path = tmp_path / "hosts.txt"
    path.write_text(text)
    return read_hosts(path)


def test_options_of_all_hosts_and_of_one(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "# our lab\nfolder=/srv/shoal\npython=/opt/venv/bin/python\n\nann@10.0.0.1 gpus=2\n"
        "gpu-2:2222 python=/usr/bin/python3.12 address=192.168.7.2  # behind a gateway\n",
    )
    assert found.folder == "/srv/shoal"
    assert [(each.called, each.gpus, each.address, each.python) for each in found.hosts] == [
        ("ann@10.0.0.1", 2, None, "/opt/venv/bin/python"),
        ("gpu-2:2222", None, "192.168.7.2", "/usr/bin/python3.12"),
    ]
    assert len({each.instance for each in found.hosts}) == 2
    assert all(INSTANCE.fullmatch(each.instance) for each in found.hosts)


@pytest.mark.parametrize(
    ("written", "folder"), [("s3://reviews", "s3://reviews"), ("s3://reviews/", "s3://reviews"), ("/srv//x/", "/srv/x")]
)
def test_what_hosts_share_has_one_form(tmp_path: Path, written: str, folder: str) -> None:
    assert read(tmp_path, f"folder={written}\nann@h1\n").folder == folder


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ann@h1\n", "names no folder that all hosts share; add a line such as folder=/srv/shoal"),
        ("folder=/srv\n", "names 0 hosts; write 1 to 1,024, a line each: user@host"),
        ("folder=/srv\nann@h1\nann@h1\n", "names ann@h1 twice; name it once, with gpus=N"),
        (
            "folder=srv\nann@h1\n",
            "line 1: folder must be an absolute path, or s3://BUCKET for all of a bucket, but is 'srv'",
        ),
        ("folder=s3://reviews/below\nann@h1\n", "line 1: folder must be an absolute path, or s3://BUCKET"),
        ("folder=s3://\nann@h1\n", "line 1: folder must be an absolute path, or s3://BUCKET"),
        ("folder=s3://Re;views\nann@h1\n", "line 1: folder must be an absolute path, or s3://BUCKET"),
        ("python=py\nfolder=/srv\nann@h1\n", "line 1: python must be an absolute path, but is 'py'"),
        ("folder=/srv\nann@h1 gpus=0\n", "line 2: gpus must be 1 to 64, but is '0'"),
        ("folder=/srv\nann@h1 gpus=two\n", "line 2: gpus must be 1 to 64, but is 'two'"),
        ("folder=/srv\nann@h1:99999\n", "line 2: 99999 is no port"),
        ("folder=/srv\nann@h1 address=h1\n", "line 2: address must be like 10.0.0.1, but is 'h1'"),
        ("folder=/srv\nann@h1 speed\n", "line 2: 'speed' is neither user@host[:port] nor one of gpus=..., address"),
        ("folder=/srv\nann@h1;reboot\n", "line 2: 'ann@h1;reboot' is neither user@host[:port] nor one of folder=..."),
    ],
)
def test_what_cannot_be_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ShoalError, match=re.escape(said)):
        read(tmp_path, text)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ShoalError, match=r"^cannot read the hosts in .*: No such file or directory$"):
        read_hosts(tmp_path / "none.txt")


@given(st.text(alphabet=string.printable, max_size=200))
def test_any_text_is_hosts_or_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hosts.txt"
    path.write_text(text)
    try:
        found = read_hosts(path)
    except ShoalError:
        return
    assert all(each.name and not set(each.name) & set(" ;&|$`'\"") for each in found.hosts)
