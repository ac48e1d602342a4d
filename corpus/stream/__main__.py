"""`python -m corpus.stream`: run one reader of a stream.

Exit status: 0 for success, 1 if the reader failed, 2 for invalid arguments.
"""

import argparse
import re
import signal
import sys
from pathlib import Path

from common.errors import DataError
from common.starter import end_with_starter
from corpus.stream.lines import describe_malformed
from corpus.stream.reader import read_stream
from corpus.stream.stream_settings import SETTINGS_NAME

_EPILOG = f"""
DIR/{SETTINGS_NAME} contains the sources and the options for reading them. Reader I writes parts, which are files with
rows of words, to DIR/reader-I. After a stop or a crash, the same command resumes after the newest part. The reader
exits when its sources end (it writes end.json) or when it fails (it writes error.json). status.json contains its
progress.

two readers of the same stream:  python -m corpus.stream --stream DIR --reader 0/2 &
                                 python -m corpus.stream --stream DIR --reader 1/2
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m corpus.stream",
        description="Read text from files, folders or S3, and write its words to parts for trainers.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--stream", type=Path, required=True, metavar="DIR", help=f"folder with {SETTINGS_NAME}")
    parser.add_argument(
        "--reader",
        type=_reader,
        default=(0, 1),
        metavar="I/N",
        help="index I of this reader, from 0, and number N of readers (default: 0/1)",
    )
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    end_with_starter()
    try:
        status = read_stream(arguments.stream, *arguments.reader)
    except DataError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if status.malformed:
        sys.stderr.write(f"{describe_malformed(status.malformed, status.lines)}\n")
    return 0


def _reader(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text)
    if not found or not int(found[1]) < int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a reader; with two readers, give 0/2 or 1/2")
    return int(found[1]), int(found[2])


if __name__ == "__main__":
    sys.exit(main())
