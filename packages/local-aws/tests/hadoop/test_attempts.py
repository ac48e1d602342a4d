import random
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shoal_local_aws.hadoop.attempts import (
    AttemptControl,
    HadoopTask,
    KilledError,
    TaskError,
    java_hash,
    merge_sorted,
    run_attempt,
)


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"", 1), (b"a", 128), (b"abc", 126145), (b"\xff", 30), (b"hello", 127791473), (b"swim in", -61328740)],
)
def test_the_hash_is_javas(key, value):
    assert java_hash(key) == value


@given(
    st.lists(st.lists(st.tuples(st.binary(max_size=4), st.binary(max_size=4)), max_size=20), min_size=1, max_size=3),
    st.integers(0, 9),
)
def test_parts_are_merged_in_byte_order_of_keys(tmp_path_factory, parts, seed):
    folder = tmp_path_factory.mktemp("merge")
    records = [[(k.hex().encode(), v.hex().encode()) for k, v in part] for part in parts]
    paths = [folder / str(number) for number in range(len(parts))]
    for path, part in zip(paths, records, strict=True):
        path.write_bytes(b"".join(key + b"\t" + value + b"\n" for key, value in part))
    out = b"".join(merge_sorted(paths, folder, random.Random(seed))).splitlines()
    assert [line.split(b"\t")[0] for line in out] == sorted(key for part in records for key, _ in part)
    assert sorted(out) == sorted(key + b"\t" + value for part in records for key, value in part)


class Attempt:
    """Runs Python code as the process of a task with the given input blocks, and returns the output."""

    def __init__(self, folder):
        self.folder = folder
        self.log = folder / "log"
        self.control = AttemptControl()

    def run(self, code, blocks, partitions=1):
        (self.folder / "code.py").write_text(code)
        task = HadoopTask(
            name="task_1_m_000000",
            command=f"{sys.executable} {self.folder}/code.py",
            environment={"PATH": "/usr/bin:/bin"},
            shipped={},
        )
        targets = [self.folder / f"out{number}" for number in range(partitions)]
        run_attempt(task, self.folder / "work", self.log, iter(blocks), targets, self.control)
        return [target.read_bytes() for target in targets]


@pytest.fixture
def process(tmp_path):
    return Attempt(tmp_path)


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("print(1); print(2, 3, sep='\\t')", b"1\t\n2\t3\n"),
        (r"import sys; sys.stdout.buffer.write(b'a\rb\r\n')", b"a\t\nb\t\n"),
    ],
)
def test_a_line_of_output_ends_at_any_newline_and_has_a_tab(code, output, process):
    assert process.run(code, []) == [output]


def test_a_process_that_leaves_input_unread_fails(process):
    with pytest.raises(TaskError, match="left input unread"):
        process.run("pass", [b"x" * 1000] * 1000)


def test_a_killed_attempt_ends_with_its_children(process):
    threading.Timer(0.3, process.control.kill).start()
    with pytest.raises(KilledError, match="while it ran"):
        process.run("import subprocess; subprocess.run(['sleep', '60'])", [])
    process.log.unlink()
    with pytest.raises(KilledError, match="before it started"):
        process.run("print(1)", [])
    assert not process.log.exists()
