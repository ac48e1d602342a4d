"""What stacks have left in an account, and what that costs: those whose names begin with the words on the command line.

python examples/what_is_left.py Web Shop
"""

import sys

from shoal_guard import left_of


def main(prefixes: list[str]) -> float:
    """Print what is left of each, and return the dollars a month that are known."""
    total = 0.0
    for prefix in prefixes:
        for left in left_of(prefix=prefix):
            if left.costs or not left.is_certain:
                print(prefix, left.kind, left.identifier, left.dollars_a_month, left.reason)
                total += left.dollars_a_month or 0.0
    print(f"{total:.2f} dollars a month")
    return total


if __name__ == "__main__":
    main(sys.argv[1:])
