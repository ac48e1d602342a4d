"""Help that fits the terminal: options and their names are broken between words alone.

The easy mistake is argparse's own way of wrapping, which breaks `--learning-rate` at its hyphens.
"""

import argparse
from textwrap import wrap


class Help(argparse.HelpFormatter):
    """Fills paragraphs of one line; one of several lines is as it was written."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _filled(" ".join(text.split()), width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = []
        for paragraph in text.strip("\n").split("\n\n"):
            written = paragraph.split("\n")
            lines += [*(_filled(paragraph, width - len(indent)) if len(written) == 1 else written), ""]
        return "".join(f"{indent}{line}".rstrip() + "\n" for line in lines[:-1])


class Parser(argparse.ArgumentParser):
    """A parser whose help, and that of the verbs below it, is laid out so.

    An option is only what is written out: a command that is shown again, changed, is what was typed.
    """

    def __init__(self, *args: object, **how: object) -> None:
        super().__init__(*args, **{"formatter_class": Help, "allow_abbrev": False, **how})  # type: ignore[arg-type]


def _filled(text: str, width: int) -> list[str]:
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)
