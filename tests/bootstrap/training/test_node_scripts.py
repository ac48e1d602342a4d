"""Where the scripts of a run put what they bring, on nodes with disks of their own and without."""

from fnmatch import fnmatch
from pathlib import Path

import pytest

from bootstrap.aws.objects import Place
from bootstrap.training.node_scripts import TrainingRun
from tests.bash import Bash
from tests.bootstrap.test_shell import CONFIG, NODE, RUN

FILE = RUN.dataset.key.replace("/", "-")


@pytest.fixture
def bash(tmp_path: Path) -> Bash:
    made = Bash(tmp_path)
    made.add("aws", 'last=${@: -1}; case $last in *.partial) echo brought >"$last" ;; esac')
    return made


def stage(bash: Bash, run: TrainingRun = RUN) -> None:
    bash.run("--posix", "-c", run.stage())
    assert bash.ended.returncode == 0, bash.ended.stderr


def rows_of(bash: Bash) -> str:
    bash.run("--posix", "-c", RUN.train([NODE], 0, 1, CONFIG))
    told = bash.told()
    return told[told.index("--cache") + 1]


def test_a_node_with_disks_of_its_own_has_the_dataset_and_the_unpacked_rows_there(bash: Bash) -> None:
    local = bash.root / "mnt" / "local"
    local.mkdir()
    stage(bash)
    assert (local / "datasets" / FILE).read_text() == "brought\n"
    assert not (bash.root / "mnt" / "share" / "datasets").exists()
    assert rows_of(bash) == str(local / "rows")
    assert (local / "rows").stat().st_mode & 0o777 == 0o700


def test_a_node_without_takes_the_share_and_its_root_volume(bash: Bash) -> None:
    stage(bash)
    assert (bash.root / "mnt" / "share" / "datasets" / FILE).read_text() == "brought\n"
    assert rows_of(bash) == str(bash.root / "var" / "cache" / "shoal")


def test_a_file_that_the_folder_has_is_not_copied_again(bash: Bash) -> None:
    stage(bash)
    stage(bash)
    assert bash.told().count(str(RUN.dataset)) == 1


def test_a_rank_of_a_real_node_needs_a_gpu_and_one_of_an_emulated_node_does_not(bash: Bash) -> None:
    bash.add("shoal-python", 'printf "needs %s\\0" "${SHOAL_NEEDS_GPU:-none}" >>"$HOME/calls"')
    script = RUN.train([NODE], 0, 1, CONFIG)
    home = str(bash.folder)
    stage(bash)
    bash.run("--posix", "-c", script, HOME=home)
    real = script.replace("/mnt/share", f"{home}/share")
    Path(home, "share", "runs", RUN.name).mkdir(parents=True)
    bash.run("--posix", "-c", real, HOME=home, NODE_ROOT="")
    assert [word for word in bash.told() if word.startswith("needs")] == ["needs none", "needs 1"]


def test_a_stop_request_while_results_are_copied_leaves_no_file_among_them(bash: Bash) -> None:
    stage(bash)
    bash.run("--posix", "-c", RUN.stop(1))
    bash.run("--posix", "-c", RUN.train([NODE], 0, 1, CONFIG))
    told = bash.told()
    sync = len(told) - told[::-1].index("sync")
    unwanted = [word.removeprefix("--exclude=") for word in told[sync:] if word.startswith("--exclude=")]
    folder = Path(told[-3])
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    assert {name for name in files if not any(fnmatch(name, pattern) for pattern in unwanted)} == {"node-0.log"}
    assert len(files) == 2


def test_two_datasets_are_never_one_file_on_a_node() -> None:
    other = TrainingRun(
        name=RUN.name,
        dataset=Place("data", f"datasets/{2:032x}/dataset.h5"),
        bucket="data",
        region="us-east-1",
        lasting=True,
    )
    assert other.file != RUN.file
