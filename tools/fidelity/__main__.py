"""`python -m tools.fidelity`: writes docs/reference/fidelity.md, from the code and from what was measured (record.yaml)."""

import argparse
import sys
from collections.abc import Sequence

from bootstrap.cli.output import say
from tools.fidelity import document, measuring
from tools.fidelity.calls import find_calls


def main(arguments: Sequence[str]) -> int:
    """Write the document. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.fidelity", description=__doc__)
    parser.add_argument(
        "--record", action="store_true", help="measure the emulator again first; takes five minutes, and no account"
    )
    if parser.parse_args(arguments).record:
        document.write(measuring.measure(find_calls(), say))
    document.DOCUMENT.write_text(document.text(document.read()), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
