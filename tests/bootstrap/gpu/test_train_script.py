"""The script that trains on nodes without the agent. The page about plain tools runs it on emulated nodes."""

from pathlib import Path

import pytest

from tests.bash import Bash

SCRIPT = Path(__file__).parents[3] / "bootstrap" / "gpu" / "train.sh"
DATASET, OUTPUT = "s3://data/datasets/0a/dataset.h5", "s3://data/runs/one"


@pytest.fixture
def bash(tmp_path):
    made = Bash(tmp_path)
    made.add("shoal-python")
    (made.root / "usr" / "local" / "bin" / "shoal-python").symlink_to(tmp_path / "programs" / "shoal-python")
    return made


def trains(bash, *arguments, **environment):
    """Run the script on the node 10.0.1.20, and return the recorded words."""
    bash.run(str(SCRIPT), *arguments, **{"ADDRESS": "10.0.1.20", "RANKS": "4", **environment})
    return bash.recorded_words()[:-1]


@pytest.mark.parametrize(("nodes", "rank"), [("10.0.1.20 10.0.1.7", 0), ("10.0.1.7\t10.0.1.20", 1)])
def test_a_nodes_rank_is_its_place_in_the_list(bash, nodes, rank):
    words = trains(bash, "data.h5", "out", "--epochs", "2", NODES=nodes)
    assert bash.ended.returncode == 0, bash.ended.stderr
    launch = words[words.index("trainer.launch") :]
    assert {f"--node-rank={rank}", "--nnodes=2", "--nproc-per-node=4", f"--master-addr={nodes.split()[0]}"} < {*launch}
    assert launch[launch.index("trainer") :][:5] == ["trainer", "--data", "data.h5", "--output", "out"]
    assert launch[-2:] == ["--epochs", "2"]
    assert "aws" not in words


@pytest.mark.parametrize(("nodes", "copies"), [("", 2), ("10.0.1.20 10.0.1.7", 2), ("10.0.1.7 10.0.1.20", 1)])
def test_data_is_copied_to_each_node_and_results_from_the_first(bash, nodes, copies):
    words = trains(bash, DATASET, OUTPUT, NODES=nodes)
    assert bash.ended.returncode == 0, bash.ended.stderr
    disk = bash.root / "var" / "cache" / "shoal"
    data, folder = f"{disk}/datasets/data/datasets/0a/dataset.h5", f"{bash.root}/mnt/share/runs/one"
    assert words[:6] == ["aws", "s3", "cp", "--only-show-errors", DATASET, data]
    assert [words[words.index(name) + 1] for name in ("--data", "--output")] == [data, folder]
    assert words.count("aws") == copies
    if copies == 2:
        assert words[-2:] == [folder, OUTPUT]


def test_data_that_is_on_the_nodes_own_disk_is_kept(bash):
    data = bash.root / "mnt" / "local" / "datasets" / "data" / "datasets" / "0a" / "dataset.h5"
    data.parent.mkdir(parents=True)
    data.touch()
    words = trains(bash, DATASET, "out")
    assert ("aws" in words, words[words.index("--data") + 1]) == (False, str(data))


def test_a_failed_run_copies_nothing(bash):
    bash.add("shoal-python", "exit 3")
    words = trains(bash, "data.h5", OUTPUT)
    assert (bash.ended.returncode, "aws" in words) == (3, False)


def test_wrong_use_is_explained(bash, messages):
    found = {}
    for name, arguments, nodes in (("no output", ["data.h5"], ""), ("other nodes", ["data.h5", "out"], "10.0.1.7")):
        assert trains(bash, *arguments, NODES=nodes) == []
        found[name] = bash.ended.stderr.strip().replace(str(SCRIPT), "train.sh")
    messages.check("\n".join(found.values()))
