"""Reviews as lines of JSON for files of tests."""

import json


def json_lines(*objects: object) -> bytes:
    """Return each object as a line."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in objects)


def snap_lines(*texts_and_ratings: tuple[object, object]) -> bytes:
    """Return reviews with the fields of SNAP's files."""
    return json_lines(*({"reviewText": text, "overall": rating} for text, rating in texts_and_ratings))
