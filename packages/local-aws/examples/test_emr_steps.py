"""Tests that really run EMR steps of mrjob and Spark, without an AWS account.

    pip install pytest "./packages/local-aws[mrjob,spark]"; pytest test_emr_steps.py

`shoal_aws` is a fixture of shoal-local-aws. mrjob needs Python 3.11, Spark needs Java.
"""

import subprocess
import sys
from pathlib import Path

import boto3

TEXT = "the lamp the book\nthe lamp\n"
COUNTS = {"the": "3", "lamp": "2", "book": "1"}
JOB = """
from mrjob.job import MRJob


class CountWords(MRJob):
    def mapper(self, _, line):
        for word in line.split():
            yield word, 1

    def combiner(self, word, counts):
        yield word, sum(counts)

    def reducer(self, word, counts):
        yield word, sum(counts)


if __name__ == "__main__":
    CountWords.run()
"""
PROGRAM = """
import sys

from pyspark.sql import SparkSession

given, output = sys.argv[1:]
lines = SparkSession.builder.getOrCreate().sparkContext.textFile(given)
counts = lines.flatMap(str.split).map(lambda word: (word, 1)).reduceByKey(lambda one, other: one + other)
counts.map(lambda pair: f"{pair[0]}\\t{pair[1]}").saveAsTextFile(output)
"""


def test_a_job_of_mrjob_counts_words(shoal_aws: boto3.Session, tmp_path: Path) -> None:
    bucket = made_bucket(shoal_aws, "mrjob-texts")
    (tmp_path / "count_words.py").write_text(JOB)
    options = "-r emr --region us-east-1 --release-label emr-7.10.0 --instance-type m5.xlarge --no-bootstrap-mrjob"
    places = f"--cloud-tmp-dir s3://{bucket}/scratch/ --output-dir s3://{bucket}/counts s3://{bucket}/texts/"
    words = [*options.split(), "--python-bin", "python3.11", *places.split()]
    subprocess.run([sys.executable, tmp_path / "count_words.py", *words], check=True)
    assert {word.strip('"'): count for word, count in counts_in(shoal_aws, bucket).items()} == COUNTS


def test_a_step_of_spark_counts_words(shoal_aws: boto3.Session) -> None:
    bucket = made_bucket(shoal_aws, "spark-texts")
    shoal_aws.client("s3").put_object(Bucket=bucket, Key="count.py", Body=PROGRAM.encode())
    words = ["spark-submit", f"s3://{bucket}/count.py", f"s3://{bucket}/texts/", f"s3://{bucket}/counts"]
    emr = shoal_aws.client("emr")
    cluster = emr.run_job_flow(
        Name="words",
        ReleaseLabel="emr-7.10.0",
        Applications=[{"Name": "Spark"}],
        Instances={"MasterInstanceType": "m5.xlarge", "InstanceCount": 1},
        ServiceRole="EMR_DefaultRole",
        JobFlowRole="EMR_EC2_DefaultRole",
        Steps=[
            {
                "Name": "count words",
                "ActionOnFailure": "TERMINATE_CLUSTER",
                "HadoopJarStep": {"Jar": "command-runner.jar", "Args": words},
            }
        ],
    )["JobFlowId"]
    emr.get_waiter("cluster_terminated").wait(ClusterId=cluster, WaiterConfig={"Delay": 1, "MaxAttempts": 200})
    assert counts_in(shoal_aws, bucket) == COUNTS


def made_bucket(session: boto3.Session, name: str) -> str:
    s3 = session.client("s3")
    s3.create_bucket(Bucket=name)
    s3.put_object(Bucket=name, Key="texts/one.txt", Body=TEXT.encode())
    return name


def counts_in(session: boto3.Session, bucket: str) -> dict[str, str]:
    s3 = session.client("s3")
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket, Prefix="counts/part-").get("Contents", [])]
    lines = [
        line for key in keys for line in s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode().splitlines()
    ]
    return dict(line.split("\t") for line in lines)
