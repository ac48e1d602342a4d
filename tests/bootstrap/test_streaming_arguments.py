"""The jobs as a cluster gets them: the same steps as on this machine, said in Hadoop Streaming's words."""

import shlex
from itertools import pairwise

from bootstrap.preprocess import streaming_arguments
from corpus.settings import Settings
from jobs.steps import JobStep, Plan


def steps(**settings: object) -> dict[str, list[str]]:
    plan = Plan(
        inputs=("s3://raw/reviews/a.json.gz", "s3://raw/b"),
        work="s3://data/between/1",
        output="s3://data/datasets",
        settings=Settings(**settings),
        input_bytes=10**9,
    )
    return {step.name: streaming_arguments(step, 6, "run1") for step in plan.steps() if isinstance(step, JobStep)}


def values(arguments: list[str], option: str) -> list[str]:
    return [value for name, value in pairwise(arguments) if name == option]


def test_the_first_job_reads_all_input_and_feeds_the_others() -> None:
    made = steps()
    assert values(made["deduplicate"], "-input") == ["s3://raw/reviews/a.json.gz", "s3://raw/b"]
    assert values(made["deduplicate"], "-output") == ["s3://data/between/1/distinct"]
    assert values(made["count words"], "-input") == ["s3://data/between/1/distinct"]
    assert values(made["encode"], "-input") == ["s3://data/between/1/distinct"]


def test_a_line_ends_at_newline_alone_and_the_reducers_are_as_many_as_asked() -> None:
    for arguments in steps().values():
        assert arguments[0] == "hadoop-streaming"
        assert "textinputformat.record.delimiter=\n" in values(arguments, "-D")
        assert "mapreduce.job.reduces=6" in values(arguments, "-D")


def test_generic_options_come_first_as_hadoop_wants_them() -> None:
    for arguments in steps().values():
        generic = [index for index, argument in enumerate(arguments) if argument in ("-D", "-files")]
        assert max(generic) < arguments.index("-mapper")


def test_tasks_run_the_job_with_the_settings() -> None:
    for kind in ("mapper", "reducer"):
        (command,) = values(steps(row_length=7)["encode"], f"-{kind}")
        words = shlex.split(command)
        assert words[:5] == ["shoal-python", "-m", "jobs.encode", "--step-num=0", f"--{kind}"]
        assert {"--row-length=7", "--parts=s3://data/between/1/parts", "--vocabulary=vocabulary.txt"} <= set(words)


def test_files_travel_with_the_tasks_under_the_name_that_they_are_told() -> None:
    encode = steps(stopwords="s3://data/between/1/stopwords.txt")["encode"]
    assert values(encode, "-files") == [
        "s3://data/between/1/vocabulary.txt#vocabulary.txt,s3://data/between/1/stopwords.txt#stopwords.txt"
    ]
    assert "--stopwords=stopwords.txt" in shlex.split(values(encode, "-mapper")[0])


def test_the_number_of_parts_grows_with_the_input() -> None:
    def bits(size: int) -> int:
        return Plan(inputs=(), work="w", output="o", input_bytes=size).part_bits

    assert [bits(size) for size in (0, 1, 10**9, 10**10, 10**11, 10**15)] == [3, 3, 3, 6, 9, 16]
