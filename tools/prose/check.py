"""Finds phrases to avoid and long sentences in a text."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from tools.prose import texts

LONGEST = 30
"""Maximum number of words in a sentence of a document or docstring."""
FIRST_WORDS = re.compile(r"(By|Of|As|In|To|From|With|At|On|What|That)\b")
"""Words with which a docstring must not start, because its noun or its verb is then missing."""
SECTION = re.compile(r"\n\s*(?:Args|Returns|Raises|Yields|Attributes|Examples?):")


class Finding(NamedTuple):
    """Phrase to replace: its line, the kind of text that contains it, and advice on a better phrase."""

    line: int
    kind: str
    phrase: str
    advice: str


def allowed() -> dict[str, list[str]]:
    """Return the exceptions in allowed.yaml: for each phrase, the files that are allowed to contain it."""
    found: dict[str, list[str]] = yaml.safe_load((Path(__file__).parent / "allowed.yaml").read_text())
    return found


def rules() -> list[tuple[re.Pattern[str], str]]:
    """Return the patterns in patterns.yaml, each with its advice."""
    listed = yaml.safe_load((Path(__file__).parent / "patterns.yaml").read_text())
    return [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in listed.items()]


RULES, ALLOWED = rules(), allowed()


def findings(path: str, source: str) -> Iterator[Finding]:
    """Yield the phrases to replace in a file. The suffix of `path` determines how `source` is split into texts."""
    if path.endswith(".py"):
        found = texts.of_python(source)
    elif path.endswith(".md"):
        found = texts.of_document(source)
        yield from _long(1, "document", source)
    else:
        found = texts.of_lines(source)
    for line, kind, text in found:
        for rule, advice in RULES:
            for match in rule.finditer(text):
                if path in ALLOWED.get(match[0].lower(), ()):
                    continue
                yield Finding(line + text[: match.start()].count("\n"), kind, match[0].lower(), advice)
        if kind == "docstring":
            if first := FIRST_WORDS.match(text):
                yield Finding(line, kind, first[0], "start the docstring with what the function returns or does")
            yield from _long(line, kind, SECTION.split(text)[0])


def _long(line: int, kind: str, text: str) -> Iterator[Finding]:
    for sentence in texts.sentences(text):
        if len(sentence.split()) > LONGEST:
            yield Finding(line, kind, f"{sentence[:50]}...", f"split this sentence of {len(sentence.split())} words")
