"""`python -m tools.fidelity`: writes docs/fidelity.md, from the code and from what was measured (record.yaml)."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bootstrap.cli.output import print_error, say
from common.errors import ShoalError
from tools.fidelity import document, measuring
from tools.fidelity.calls import find_calls


def main(arguments: Sequence[str]) -> int:
    """Write the document. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.fidelity", description=__doc__)
    parser.add_argument(
        "--record", action="store_true", help="first measure the emulator anew; takes five minutes, and no account"
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="add what a run of tools.acceptance_aws tried on AWS: its report.json",
    )
    options = parser.parse_args(arguments)
    found = document.read()
    if options.record:
        found = {**measuring.measure(find_calls(), say), "tried": found.get("tried", {})}
        document.write(found)
    if options.report:
        try:
            found = document.with_report(found, options.report)
        except ShoalError as error:
            print_error(str(error))
            return 1
        document.write(found)
    document.DOCUMENT.write_text(document.text(found), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
