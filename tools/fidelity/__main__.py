"""Measure the fidelity of the emulator, and write tools/fidelity/record.yaml. Takes five minutes, and needs no AWS
account."""

import argparse

from bootstrap.cli.output import say
from tools.fidelity import document, measuring
from tools.fidelity.calls import find_calls

if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m tools.fidelity", description=__doc__).parse_args()
    document.write(measuring.measure(find_calls(), say))
