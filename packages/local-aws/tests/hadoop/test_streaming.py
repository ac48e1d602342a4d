import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from shoal_local_aws.faults.kinds import AttemptFaults
from shoal_local_aws.hadoop.streaming import attempt_faults_environment

PACKAGES = Path(__file__).resolve().parents[2]

PROGRAMS = yaml.safe_load(Path(__file__).with_name("programs.yaml").read_text("utf-8"))


class Hadoop:
    def __init__(self, root):
        self.root = root
        self.faults = AttemptFaults()
        self.output = root / "output"
        for name, code in PROGRAMS.items():
            (root / f"{name}.py").write_text(code)
        (root / "trace").mkdir()

    def run(self, *arguments, **properties):
        settings = [part for name, value in properties.items() for part in ("-D", f"{name.replace('_', '.')}={value}")]
        command = [sys.executable, "-m", "shoal_local_aws.hadoop.streaming", *settings, *arguments]
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PACKAGES),
            "NODE_ROOT": str(self.root),
            "TRACE": str(self.root / "trace"),
            **attempt_faults_environment(self.faults),
        }
        command += ["-output", f"file://{self.output}"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def over(self, text, *arguments, **properties):
        (self.root / "input.txt").write_text(text)
        return self.run(*arguments, "-input", f"file://{self.root}/input.txt", **properties)

    def program(self, name):
        return f"{sys.executable} {name}"

    def count_words(self, words, files, **properties):
        """Run a job that counts the words in a folder with this number of files."""
        (self.root / "input").mkdir()
        for number in range(files):
            (self.root / "input" / f"{number}.txt").write_text(" ".join(words[number::files]))
        done = self.run(
            *["-files", f"{self.root}/mapper.py,{self.root}/reducer.py#sum.py", "-mapper", self.program("mapper.py")],
            *["-reducer", self.program("sum.py"), "-input", f"file://{self.root}/input"],
            **properties,
        )
        assert done.returncode == 0, done.stderr
        counts = Counter()
        for key, value in self.records():
            counts[key] += int(value)
        assert counts == Counter(words)
        assert (self.output / "_SUCCESS").exists()

    def records(self):
        parts = sorted(self.output.glob("part-*"))
        return [line.split("\t") for part in parts for line in part.read_text().splitlines()]


@pytest.fixture
def hadoop(tmp_path):
    return Hadoop(tmp_path.resolve())


@pytest.fixture
def words():
    chosen = random.Random(7)
    return [chosen.choice(["shoal", "fish", "swim", "pace", "été", "a'b"]) for _ in range(5000)]


@pytest.mark.parametrize(
    ("files", "reduces", "faults"),
    [(2, 8, AttemptFaults()), (5, 3, AttemptFaults(seed=4, killed=0.3, doubled=0.5, within=0.3))],
)
def test_words_are_counted_with_any_files_reducers_and_faults(hadoop, words, files, reduces, faults):
    hadoop.faults = faults
    hadoop.count_words(words, files, mapreduce_job_reduces=reduces)
    parts = sorted(hadoop.output.glob("part-*"))
    assert len(parts) == reduces
    for part in parts:
        keys = [line.split("\t")[0].encode() for line in part.read_text().splitlines()]
        assert keys == sorted(keys)


@pytest.mark.parametrize(("attempts", "failures", "records"), [("4", 2, [["out", "of every attempt"]]), ("2", 1, None)])
def test_a_failed_task_is_retried_and_only_its_last_output_counts(hadoop, attempts, failures, records):
    done = hadoop.over(
        "x\n",
        *["-files", f"{hadoop.root}/flaky.py", "-mapper", hadoop.program("flaky.py"), "-reducer", "cat"],
        mapreduce_map_maxattempts=attempts,
    )
    assert done.returncode == (0 if records else 1)
    assert done.stderr.count("Status : FAILED") == failures  # Hadoop's client does not print the last failure
    assert hadoop.output.exists() is bool(records)
    assert records is None or hadoop.records() == records
    assert ("m_000000 failed 2 times" in done.stderr) is (records is None)
    logs = sorted(hadoop.root.glob("var/log/hadoop-yarn/containers/*/*/stderr"))
    assert ["attempt" in log.read_text() for log in logs[:2]] == [True] * 2


def test_without_reducers_mappers_write_the_parts_and_an_existing_output_is_refused(hadoop):
    assert hadoop.over("b a\n" * 50, "-mapper", "cat", mapreduce_job_reduces="0").returncode == 0
    assert hadoop.records() == [["b a", ""]] * 50
    done = hadoop.over("x\n", "-mapper", "cat", "-reducer", "cat")
    assert (done.returncode, "already exists" in done.stderr) == (1, True)


def test_the_output_of_a_reducer_without_input_is_dropped(hadoop):
    assert hadoop.over("", "-mapper", "cat", "-reducer", "echo text").returncode == 0
    assert hadoop.records() == []


def stamped(hadoop, *variables, **properties):
    """Run a job with one map task and these environment variables. The task records its attempts in `trace`."""
    return hadoop.over(
        "x\n",
        *(word for variable in variables for word in ("-cmdenv", variable)),
        *["-files", f"{hadoop.root}/stamps.py", "-mapper", hadoop.program("stamps.py")],
        mapreduce_job_reduces="0",
        **properties,
    )


def trace(hadoop):
    return {path.name: path.read_text() for path in sorted((hadoop.root / "trace").iterdir())}


def test_the_first_successful_attempt_counts_and_the_other_is_killed(hadoop):
    hadoop.faults = AttemptFaults(doubled=1.0, within=0.4)
    done = stamped(hadoop, "awaited=000000_1", "endless=000000_1")
    assert done.returncode == 0, done.stderr
    assert trace(hadoop) == {"000000_0": "ended", "000000_1": "started"}
    assert "Status : KILLED" in done.stderr
    assert hadoop.records() == [["done", ""]]


def test_a_job_may_disable_speculative_attempts(hadoop):
    hadoop.faults = AttemptFaults(doubled=1.0, within=0.4)
    assert stamped(hadoop, "lasts=0.7", mapreduce_map_speculative="false").returncode == 0
    assert trace(hadoop) == {"000000_0": "ended"}


def test_a_killed_attempt_does_not_count_as_a_failure(hadoop):
    hadoop.faults = AttemptFaults(killed=1.0, within=0.2)
    done = stamped(hadoop, "awaited=000000_3", mapreduce_map_maxattempts="1")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Status : KILLED") == 3
    assert trace(hadoop)["000000_3"] == "ended"
    assert hadoop.records() == [["done", ""]]


def test_a_value_of_megabytes_stays_intact(hadoop):
    done = hadoop.over("b\t" + "v" * 5_000_000 + "\na\t" + "w" * 6_000_000 + "\n", "-mapper", "cat", "-reducer", "cat")
    assert done.returncode == 0, done.stderr
    assert hadoop.records() == [["a", "w" * 6_000_000], ["b", "v" * 5_000_000]]
