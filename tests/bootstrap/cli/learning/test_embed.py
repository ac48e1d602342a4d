"""`shoal embed` from a bucket that nobody has."""

from pathlib import Path

from tests.bootstrap.cli.command import ACCOUNT, shoal_here


def test_a_bucket_that_nobody_has_is_one_sentence(tmp_path: Path) -> None:
    nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_DEFAULT_REGION": "us-east-1", **ACCOUNT}
    done = shoal_here("embed", "--local", "--input", "s3://none/texts", "--output", tmp_path / "out", **nowhere)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "127.0.0.1:9" in done.stderr
