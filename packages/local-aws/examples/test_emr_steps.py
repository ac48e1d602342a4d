"""Tests that really run EMR steps of mrjob, without an AWS account.

    pip install pytest "./packages/local-aws[mrjob]"; pytest test_emr_steps.py

`shoal_aws` is a fixture of shoal-local-aws. mrjob needs Python 3.11.
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

    def reducer(self, word, counts):
        yield word, sum(counts)


if __name__ == "__main__":
    CountWords.run()
"""


def test_a_job_of_mrjob_counts_words(shoal_aws: boto3.Session, tmp_path: Path) -> None:
    bucket = made_bucket(shoal_aws, "mrjob-texts")
    (tmp_path / "count_words.py").write_text(JOB)
    options = "-r emr --region us-east-1 --release-label emr-7.10.0 --instance-type m5.xlarge --no-bootstrap-mrjob"
    places = f"--cloud-tmp-dir s3://{bucket}/scratch/ --output-dir s3://{bucket}/counts s3://{bucket}/texts/"
    words = [*options.split(), "--python-bin", "python3.11", *places.split()]
    subprocess.run([sys.executable, tmp_path / "count_words.py", *words], check=True)
    assert {word.strip('"'): count for word, count in counts_in(shoal_aws, bucket).items()} == COUNTS


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
