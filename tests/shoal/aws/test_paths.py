"""Conversion of object names to paths below a folder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.display import printable
from common.errors import ShoalError
from common.files import whole_file
from shoal.aws.paths import path_below

parts = st.one_of(
    st.sampled_from(
        ["", ".", "..", "...", "~", "a", "model.pt", "\0", "a\0b", "\\", "C:", "x" * 300, "é" * 150, "link"]
    ),
    st.text(max_size=4),
)
names = st.lists(parts, max_size=6).map("/".join)


@pytest.fixture
def folder(tmp_path):
    return furnished(tmp_path)


def furnished(home):
    """Folder with a link that leads out of it, a dangling link, a file and a folder."""
    made = home / "results"
    (made / "folder").mkdir(parents=True)
    (made / "file").touch()
    (made / "link").symlink_to(made.parent)
    (made / "folder" / "nowhere").symlink_to(made.parent / "nothing")
    return made


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    return furnished(tmp_path_factory.mktemp("used"))


@given(names)
def test_a_name_gives_a_writable_path_below_the_folder_or_is_refused(used, name):
    try:
        path = path_below(used, name)
    except ShoalError as refused:
        printed = str(refused)
    else:
        printed = f"{name}: "
        assert path.relative_to(used).as_posix() == name
        assert path.resolve() == used.resolve() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as partial:
            partial.touch()
        path.unlink()
    assert printable(printed).startswith(f"{printable(name)}: ")


@pytest.mark.parametrize(
    ("reason", "names"),
    [
        ("begins with a dot", ["../x", "a/../../x", "a/./x", ".bashrc"]),
        ("is empty", ["/etc/passwd", "a//b", "a/", ""]),
        ("is not printable", ["a\0b", "a\nb"]),
        ("backslash", ["a\\..\\b"]),
        ("too long", ["x" * 201, "/".join(["x" * 99] * 50)]),
        ("is a link", ["link/x", "link", "folder/nowhere", "folder/nowhere/x"]),
        ("is not a folder", ["file/x"]),
        ("is a folder", ["folder"]),
    ],
)
def test_a_name_that_leaves_the_folder_or_is_invalid_is_refused_with_the_reason(folder, reason, names):
    for name in names:
        with pytest.raises(ShoalError, match=reason):
            path_below(folder, name)


@pytest.mark.parametrize(
    "name", ["model.pt", "checkpoints/step-00000010.pt", "a..b", "é", "a b", "~", "file", "x" * 200]
)
def test_names_that_shoal_and_its_users_give_are_accepted(folder, name):
    assert path_below(folder, name) == folder / name


def test_the_folder_itself_may_be_a_link(tmp_path, folder):
    (tmp_path / "linked").symlink_to(folder)
    assert path_below(tmp_path / "linked", "x") == tmp_path / "linked" / "x"
