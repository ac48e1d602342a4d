"""Lists resources that deleted stacks left in an account, and their cost. The arguments are prefixes of stack names.

python examples/what_is_left.py Web Shop
"""

import sys

from shoal_guard import left_of


def main(prefixes: list[str]) -> float:
    """Print the remaining resources, and return their known cost in dollars per month."""
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
