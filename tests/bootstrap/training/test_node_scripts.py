"""Where the scripts of a run put what they bring, on nodes with disks of their own and without."""

import fcntl
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import pytest

from bootstrap.training.node_scripts import TrainingRun
from corpus.reading.s3 import Place
from tests.bash import Bash
from tests.bootstrap.test_shell import CONFIG, DATASET, NODE, RUN

TEXTS = replace(RUN, dataset="0123456789ab")
FILE = DATASET.key.replace("/", "-")


@pytest.fixture
def bash(tmp_path: Path) -> Bash:
    made = Bash(tmp_path)
    made.add("aws", 'last=${@: -1}; case $last in *.partial) echo brought >"$last" ;; esac')
    return made


def stage(bash: Bash, run: TrainingRun = RUN) -> None:
    bash.run("--posix", "-c", run.stage(NODE))
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


@pytest.fixture
def encoder(bash: Bash) -> Bash:
    """The node's Python encodes texts, and nothing else."""
    bash.add("shoal-python", '[ "$2" = corpus.text_request ] && echo encoded >"$4"')
    return bash


def places(bash: Bash) -> list[Path]:
    """Where the dataset of the texts is, below the node's root; nothing else is beside it."""
    found = [path for path in bash.root.rglob("datasets/*") if path.suffix != ".lock"]
    assert all(path.read_text() == "encoded\n" for path in found)
    return sorted(path.relative_to(bash.root) for path in found)


def test_texts_are_encoded_on_the_disks_of_the_first_node_and_shared(encoder: Bash) -> None:
    (encoder.root / "mnt" / "local").mkdir()
    stage(encoder, TEXTS)
    shared = Path("mnt", "share", "datasets", TEXTS.file)
    assert places(encoder) == [Path("mnt", "local", "datasets", TEXTS.file), shared]
    (encoder.root / "mnt" / "local" / "datasets" / TEXTS.file).unlink()  # as on the next node
    stage(encoder, TEXTS)
    assert places(encoder) == [Path("mnt", "local", "datasets", TEXTS.file), shared]
    told = encoder.told()
    assert told.count("corpus.text_request") == 1
    request, _, progress = told[told.index("corpus.text_request") + 1 :][:3]
    assert request == f"s3://data/runs/{RUN.name}/texts.json"
    assert progress == f"s3://data/nodes/{NODE.instance_id}.texts"


def test_without_a_share_each_node_encodes_the_texts_for_itself(encoder: Bash) -> None:
    (encoder.root / "mnt" / "local").mkdir()
    stage(encoder, replace(TEXTS, share=None))
    assert places(encoder) == [Path("mnt", "local", "datasets", TEXTS.file)]


def test_an_encoding_that_fails_leaves_nothing_that_counts_as_done(encoder: Bash) -> None:
    encoder.add("shoal-python", 'mkdir "$(dirname "$4")/.texts-1"; echo half >"$4"; echo no such file >&2; exit 1')
    encoder.run("--posix", "-c", TEXTS.stage(NODE))
    assert encoder.ended.returncode == 1
    assert encoder.ended.stderr == "no such file\n"
    encoder.add("shoal-python", 'echo encoded >"$4"')
    stage(encoder, TEXTS)
    assert places(encoder) == [Path("mnt", "share", "datasets", TEXTS.file)]


@pytest.mark.parametrize("local", [False, True], ids=["on the share", "on disks of its own"])
def test_what_a_killed_command_left_of_other_texts_is_removed_and_what_is_being_encoded_stays(
    encoder: Bash, local: bool
) -> None:
    if local:
        (encoder.root / "mnt" / "local").mkdir()
    datasets = encoder.root / "mnt" / ("local" if local else "share") / "datasets"
    left, used = (datasets / f"texts-{digit * 12}.h5.parts" for digit in "ab")
    for parts in (left, used):
        (parts / ".texts-1").mkdir(parents=True)
    locks = encoder.root / "mnt" / "share" / "datasets"
    locks.mkdir(exist_ok=True)
    with (locks / f"texts-{'b' * 12}.h5.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stage(encoder, TEXTS)
        assert (left.exists(), used.exists()) == (False, True)
    stage(encoder, TEXTS)
    assert not used.exists()


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


def test_ranks_of_nodes_trust_the_network_that_their_security_group_closes() -> None:
    assert "--trust-network" in RUN.train([NODE], 0, 1, CONFIG)


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
    assert len(files) == 3  # and two hidden ones


def test_two_datasets_are_never_one_file_on_a_node() -> None:
    other = TrainingRun(
        name=RUN.name,
        dataset=Place("data", f"datasets/{2:032x}/dataset.h5"),
        bucket="data",
        region="us-east-1",
        share="efs",
    )
    assert other.file != RUN.file
