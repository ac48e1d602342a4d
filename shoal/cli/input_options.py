"""Options of all commands that read texts (`jobs.input_options`), as options of Click."""

from jobs.input_options import CLASSES, FILES, READING, TEST_FILES
from shoal.cli.command import described_options

INPUT, FORMAT = "Input", "Input format"
NOTES = {
    INPUT: "Files, folders, patterns in quotes ('reviews/*.json.gz') or s3://bucket/prefix. Files can be "
    "compressed as .gz, .bz2, .xz or .zst.",
    FORMAT: "Shoal detects these settings from the first lines of each file; `shoal preprocess --local "
    "--dry-run` shows the detected settings.",
}
"""Help text below the heading of each group of options."""
input_options = described_options((FILES, *TEST_FILES, CLASSES))
"""Decorator that declares the options that `read_inputs` uses: input files and their classes."""
reading_options = described_options(READING)
"""Decorator that declares the options that `read_reading_options` uses: how to read files."""


def require_s3(*addresses: str | None) -> None:
    """Raise ShoalError if an address is on S3 and the configured emulator is not running."""
    if any(address and address.startswith("s3://") for address in addresses):
        from shoal.aws.loopback import require_s3  # this import loads boto3

        require_s3()
