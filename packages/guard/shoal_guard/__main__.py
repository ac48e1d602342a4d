"""`python -m shoal_guard STACK`: list the resources that a stack left behind, with their cost per month.

The exit status is 0 if no resource is left that costs money. It is 1 if such a resource is left, or if a service did
not answer. It is 2 if the arguments or the credentials are not valid.
"""

import argparse
import sys

from botocore.exceptions import BotoCoreError, ClientError

from shoal_guard.errors import SweepError
from shoal_guard.left import left_of


def main(arguments: list[str]) -> int:
    """Print one line for each leftover resource and the sum of the known prices. Return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m shoal_guard", description="List the resources that a stack left behind, with prices."
    )
    parser.add_argument("stack", metavar="STACK", help="name of a CloudFormation stack, which may already be deleted")
    try:
        found = left_of(parser.parse_args(arguments).stack)
    except (ValueError, SweepError, BotoCoreError, ClientError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    for each in found:
        dollars = "unknown" if each.dollars_a_month is None else f"{each.bound} ${each.dollars_a_month:.2f}".strip()
        print(each.kind, each.identifier, f"{dollars} a month", each.outcome, each.reason, sep="\t")
    known = sum(each.dollars_a_month or 0.0 for each in found if each.costs)
    print(f"resources left: {len(found)}; the known part of their cost: ${known:.2f} per month")
    return int(any(each.costs or not each.is_certain for each in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
