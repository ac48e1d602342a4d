"""Every script that Shoal writes for a shell, run by a real bash with hostile names: none of them is executed.

Names are held against a grammar where they enter, and quoted besides; here each of the two is tested without the other.
"""

import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootstrap.aws import names
from bootstrap.errors import ShoalError
from bootstrap.nodes import shared_folder
from bootstrap.nodes.fleet import GpuNode
from bootstrap.preprocessing import cluster
from bootstrap.training.node_scripts import TrainingRun
from corpus.reading.s3 import Place
from embedded.nodes import commands
from tests.bash import Bash
from trainer.config import TrainConfig

ROOT = Path(__file__).parents[2]
HOSTILE = (
    "$(touch canary)`touch canary`<(touch canary)",
    "x';touch canary;'",
    'x";touch canary;"',
    "x\ntouch canary\n&touch canary|touch canary& a b",
    "}}${IFS}$(touch canary)",
)
NODE = GpuNode(
    instance_id="i-0123456789abcdef0",
    group="fast",
    instance_type="g5.xlarge",
    market="spot",
    zone="us-east-1a",
    address="10.0.1.20",
    gpus=1,
    launched=datetime(2026, 1, 2, tzinfo=UTC),
)
DATASET = Place("data", f"datasets/{1:032x}/dataset.h5")
RUN = TrainingRun(
    name="demo.20260102T030405-0a1b",
    dataset=DATASET,
    bucket="data",
    region="us-east-1",
    share="efs",
)
CONFIG = TrainConfig(data=Path("dataset"), output=Path("output"))
GOOD: dict[str, tuple[Callable[[str], str], str]] = {
    "bucket": (names.bucket, RUN.bucket),
    "region": (names.region, RUN.region),
    "instance": (names.instance, NODE.instance_id),
    "address": (names.address, NODE.address),
    "run": (names.run, RUN.name),
    "dataset": (names.dataset, DATASET.key),
    "work": (names.work, "0123456789ab"),
}


@pytest.mark.parametrize("kind", GOOD)
def test_names_that_shoal_writes_are_accepted(kind: str) -> None:
    check, good = GOOD[kind]
    assert check(good) == good


@given(kind=st.sampled_from(list(GOOD)), at=st.integers(0, 60), cut=st.integers(0, 3), more=st.text(max_size=6))
def test_an_accepted_name_is_one_plain_word_that_stays_in_its_folder(kind: str, at: int, cut: int, more: str) -> None:
    check, good = GOOD[kind]
    name = good[:at] + more + good[at + cut :]
    try:
        check(name)
    except ShoalError as refused:
        said = str(refused)
    else:
        said = name
        assert shlex.quote(name) == name
        assert ".." not in name.split("/")
        assert not name.startswith(("-", "/", "."))
    assert said.isprintable()


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_name_makes_no_run_and_no_node(hostile: str) -> None:
    hostiles = [
        lambda: replace(RUN, name=hostile),
        lambda: replace(RUN, name=f"demo.{hostile}"),
        lambda: replace(RUN, dataset=Place("data", f"datasets/{hostile}/dataset.h5")),
        lambda: replace(RUN, dataset=Place(hostile, DATASET.key)),
        lambda: replace(RUN, dataset=hostile),
        lambda: replace(RUN, bucket=hostile),
        lambda: replace(RUN, region=hostile),
        lambda: replace(NODE, instance_id=hostile),
        lambda: replace(NODE, address=hostile),
        lambda: cluster._kill(hostile),
    ]
    for make in hostiles:
        with pytest.raises(ShoalError, match="cannot "):
            make()


@pytest.fixture
def bash(tmp_path: Path) -> Bash:
    return Bash(tmp_path)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No name is held against a grammar."""
    for name in GOOD:
        monkeypatch.setattr(names, name, lambda text: text)


def test_an_unquoted_name_is_executed_and_this_test_notices(bash: Bash) -> None:
    bash.run("-c", f"aws {HOSTILE[0]}")
    assert bash.hurt()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("hostile", HOSTILE)
def test_scripts_of_a_run_execute_no_name(bash: Bash, hostile: str) -> None:
    run = replace(RUN, name=hostile, dataset=Place(hostile, hostile), bucket=hostile, region=hostile)
    texts = replace(run, dataset=hostile, share=None)
    nodes = [replace(NODE, address=hostile, instance_id=hostile)] * 2
    config = replace(CONFIG, cache=Path(hostile))
    for script in (
        run.stage(nodes[0]),
        texts.stage(nodes[0]),
        run.train(nodes, 0, 1, config),
        run.train(nodes, 1, 1, config),
        run.stop(0),
    ):
        bash.run("--posix", "-c", script)
    assert not bash.hurt()
    told = bash.told()
    assert f"s3://{hostile}/{hostile}" in told
    assert told[told.index("corpus.text_request") + 1] == f"s3://{hostile}/runs/{hostile}/texts.json"
    assert f"s3://{hostile}/runs/{hostile}/" in told
    assert f"--master-addr={hostile}" in told
    assert told[told.index("--cache") + 1] == str(Path(hostile))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("hostile", HOSTILE)
def test_scripts_of_the_shared_folder_and_of_cancelling_execute_no_name(bash: Bash, hostile: str) -> None:
    bash.add("yarn", f"printf '%s' {shlex.quote('application_1 shoal ' + hostile + ': encode')}")
    for script in (shared_folder._export([hostile, hostile]), shared_folder._mount(hostile), cluster._kill(hostile)):
        bash.run("--posix", "-c", script)
    assert not bash.hurt()
    assert bash.told().count(f"{hostile}:/mnt/share") == 3


@pytest.mark.parametrize("hostile", HOSTILE)
def test_the_first_boot_of_a_gpu_node_and_what_it_leaves_execute_no_name(bash: Bash, hostile: str) -> None:
    python = bash.root / "opt" / "pytorch" / "bin" / "python"
    python.write_text(
        f'#!/bin/bash\ncase "$*" in *json*) exec {shlex.quote(sys.executable)} "$@" ;; esac\n'
        f'printf "%s\\0" "$PYTHONPATH" >>{bash.folder}/calls\n'
    )
    python.chmod(0o755)
    bash.add("ec2-metadata", f"printf 'instance-id: %s' {shlex.quote(hostile)}")
    bash.add("flock", '[ "$1" = -s ]')
    bash.add("sleep", f"[ ! -e {bash.folder}/slept ] && touch {bash.folder}/slept")
    bash.add("setsid", "true")  # what it would start in the background is run below, alone
    variables = dict.fromkeys(("DATA_BUCKET", "SHARE_ID", "CODE_URL", "WHEELS_URL", "HEARTBEAT_SECONDS"), hostile)
    bash.run(str(ROOT / "bootstrap" / "nodes" / "gpu" / "boot.sh"), SHARE_KIND="efs", **variables)
    assert bash.ended.returncode == 0, bash.ended.stdout
    bash.run(str(bash.root / "usr" / "local" / "bin" / "shoal-python"), "-m", "anything")
    bash.run(str(bash.root / "opt" / "shoal" / "heartbeat"))
    assert not bash.hurt()
    told = bash.told()
    assert told[told.index("--bucket") + 1] == hostile
    assert told.count(f"{bash.root}/opt/shoal/code:{bash.root}/opt/shoal/site") == 2


@pytest.mark.parametrize("hostile", HOSTILE)
def test_the_first_boot_of_a_cluster_node_and_what_it_leaves_execute_no_name(bash: Bash, hostile: str) -> None:
    bash.add("python3.11", 'if [ "$2" = venv ]; then mkdir -p "${!#}/bin"; cp "$0" "${!#}/bin/python"; fi')
    bash.add("sleep", "exec /bin/sleep 0.05")
    root = bash.folder / hostile
    bash.run(
        str(ROOT / "bootstrap" / "preprocessing" / "emr" / "install.sh"), hostile, hostile, hostile, NODE_ROOT=str(root)
    )
    assert bash.ended.returncode == 0, bash.ended.stderr
    for folder in ("emr/metricscollector", "mnt/tmp"):
        (root / folder).mkdir(parents=True)
    home = root / "opt" / "shoal"
    (home / "compiled" / "kept").touch()
    (home / "venv" / "bin" / "python").write_text(
        "#!/bin/bash\n"
        f'printf "%s\\0" "$AWS_DEFAULT_REGION" "$PYTHONPATH" "$TMPDIR" "$NUMBA_CACHE_DIR"/* >{bash.folder}/sees\n'
        '[ -n "$CONTAINER_ID" ] || for _ in {1..100}; do\n'
        '[ -e "$NODE_ROOT/emr/metricscollector/isbusy" ] && exit; /bin/sleep 0.05\n'
        "done\n"
    )
    made = root / "usr" / "local" / "bin" / "shoal-python"
    bash.run(str(made), NODE_ROOT=str(root))
    sees = (bash.folder / "sees").read_text().split("\0")[:-1]
    assert sees == [hostile, *map(str, (home / "code", root / "mnt" / "tmp", home / "compiled" / "kept"))]
    assert (root / "emr" / "metricscollector" / "isbusy").exists()
    bash.run(str(made), NODE_ROOT=str(root), CONTAINER_ID="container_7")
    *_, tmpdir, compiled, _ = (bash.folder / "sees").read_text().split("\0")
    assert tmpdir == str(bash.folder)
    assert re.fullmatch(rf"{re.escape(str(bash.folder))}/compiled\.\w+/kept", compiled)
    assert bash.told().count(hostile) >= 2
    assert not bash.hurt()


@pytest.mark.parametrize("hostile", HOSTILE)
def test_commands_of_emulated_machines_execute_no_path(
    bash: Bash, hostile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = bash.folder / hostile / "python"
    beside.parent.mkdir()
    for name in ("aws", "python"):
        (beside.parent / name).write_text("#!/bin/bash\nexit 0\n")
        (beside.parent / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(beside))
    made = bash.folder / "made"
    commands.write_commands(made, file_systems=bash.folder / hostile / "efs", hosts=bash.folder / hostile / "hosts")
    for program, *arguments in (["aws"], ["python3.11"], ["mount", "-t", "efs", "fs-1:/", str(bash.folder / "share")]):
        bash.run(str(made / program), *arguments)
        assert bash.ended.returncode == 0, bash.ended.stderr
    bash.run(str(made / "mount"), "-t", "nfs4", f"{hostile}:{hostile}", "share")
    assert not bash.hurt()
    assert (bash.folder / hostile / "efs" / "fs-1").is_dir()


def test_user_data_execute_no_value(bash: Bash) -> None:
    from infra.training import _user_data

    values = {f"VALUE_{number}": hostile for number, hostile in enumerate(HOSTILE)}
    script = _user_data({**values, "LAST": "'"}, f"s3://{HOSTILE[2]}/boot.sh").render()
    bash.run("-c", re.sub(r'bash "\$\{NODE_ROOT:-\}/tmp/boot.sh"', 'printf "%s\\\\0" "$VALUE_2" >>calls', script))
    assert not bash.hurt()
    assert f"s3://{HOSTILE[2]}/boot.sh" in bash.told()
    assert HOSTILE[2] in bash.told()
