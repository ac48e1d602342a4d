"""Slow implementation of the strict JSON of docs/reference/dataset.md."""

import json


class Pairs(list):
    """JSON object as a list of all its pairs, with repeated keys."""


def strict_json(line: bytes):
    """Parse strictly by RFC 8259; raise ValueError for anything invalid anywhere in the line."""

    def number(convert):
        def parse(digits):
            if abs(float(digits)) == float("inf"):
                raise ValueError("overflows a double")
            return convert(digits)

        return parse

    def constant(name):
        raise ValueError(name)

    def sound(value):
        if isinstance(value, str):
            value.encode("utf-8")
        if isinstance(value, Pairs):
            return {sound(key): sound(item) for key, item in value}
        if isinstance(value, list):
            return [sound(item) for item in value]
        return value

    try:
        parsed = json.loads(
            line.decode("utf-8"),
            object_pairs_hook=Pairs,
            parse_float=number(float),
            parse_int=number(int),
            parse_constant=constant,
        )
        return sound(parsed)
    except (UnicodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
