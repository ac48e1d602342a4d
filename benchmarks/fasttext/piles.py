"""Piles of labelled texts, split into training rows and test rows, the same for all programs.

A pile with test files keeps them, with all texts as published. Any other pile is split at random. Then only the first
of equal texts is used, because equal texts could be in both parts.
"""

import random
import shlex
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import torch

from common.errors import UsageError
from corpus.dataset_settings import Settings
from corpus.reading.acceptance import DEFAULT_MAX_MALFORMED, check_input, first_positive_code
from corpus.reading.formats import LabelEncoder
from corpus.reading.inputs.inspection import inspect_inputs
from corpus.reading.ranges import read_batches
from corpus.reading.sources import WHOLE, Inputs, Range
from corpus.reading.tally import Tally
from corpus.text import FIRST_WORD
from corpus.tokens import tokens
from jobs.input_options import read_inputs
from jobs.job_settings import LABELLING, apply_labelling
from shoal.cli.command import command, described_options
from shoal.cli.input_options import input_options, reading_options
from shoal.runs.sources.texts import TextsSource, dataset_of_texts
from trainer.classification.data import TextData, load_data
from trainer.classification.rows import Rows


class Example(NamedTuple):
    """Text, with its words separated by spaces, and its label, 0 or 1."""

    text: str
    label: int


class Pile(NamedTuple):
    """Training texts and test texts."""

    learned: list[Example]
    test: list[Example]
    """Empty if a share of the training texts must be split off."""
    test_share: float
    """Share of the test texts to split off, from 0 to 1."""


class Parts(NamedTuple):
    """One split of a pile. The files have one text per line, after its label in fastText's format."""

    train: Path
    """File of the training rows, including the held-out rows."""
    test: Path
    learned: list[Example]
    """Training rows without the held-out rows."""
    held_out: list[Example]
    tested: list[Example]


def read_pile(options: str) -> Pile:
    """Read the files that the options of `shoal preprocess` from --input to --positive-from name.

    Words are those of rule 1b (docs/reference/dataset.md). Texts without words are left out. Raises DataError for
    unreadable files and for more than two classes, and ShoalError for other options.
    """
    try:
        inputs, chosen = _reading.main(shlex.split(options), prog_name="shoal preprocess", standalone_mode=False)
    except click.UsageError as error:
        raise UsageError(error.format_message()) from error
    inspection, tally = inspect_inputs(inputs), Tally()
    settings = inspection.settings(chosen)
    found: list[tuple[str, int, bool]] = []
    for source in inspection.sources:
        whole = Range(source.address, 0, WHOLE, source.format, source.code, source.test, source.size)
        for batch in read_batches(whole, LabelEncoder(settings), tally):
            texts = (" ".join(tokens(text)) for text in batch.texts)
            found += [(text, code, source.test) for text, code in zip(texts, batch.codes, strict=True) if text]
    check_input(tally, DEFAULT_MAX_MALFORMED, settings)
    first = first_positive_code(Counter(code for _, code, _ in found), settings)
    learned, test = (
        [Example(text, int(code >= first)) for text, code, of_test in found if of_test == wanted]
        for wanted in (False, True)
    )
    return Pile(learned if test else _distinct(learned), test, settings.test_share)


@command()
@input_options
@reading_options
@described_options(LABELLING)
def _reading(**options: Any) -> tuple[Inputs, Settings]:
    settings = apply_labelling(Namespace(**options), Settings())
    return read_inputs(options, settings), settings


def make_parts(pile: Pile, folder: Path, *, seed: int) -> Parts:
    """Split a pile at random, unless it has test files, and write both parts to a folder in random order."""
    mixed = random.Random(seed).sample(pile.learned, len(pile.learned))  # noqa: S311
    count = 0 if pile.test else max(1, round(pile.test_share * len(mixed)))
    tested, learned = pile.test or mixed[:count], mixed[count:]
    folder.mkdir(exist_ok=True)
    train, test = (
        write_examples(folder / f"{name}.txt", examples) for name, examples in (("train", learned), ("test", tested))
    )
    data = load_data(read_texts(train, test, folder))
    return Parts(train, test, _examples(data, data.training), _examples(data, data.validation), tested)


def write_examples(path: Path, examples: Sequence[Example]) -> Path:
    """Write texts in fastText's format, one per line, and return the path."""
    path.write_text("".join(f"__label__{example.label + 1} {example.text}\n" for example in examples), "utf-8")
    return path


def read_texts(train: Path, test: Path, folder: Path) -> Path:
    """Make the dataset of two files in a folder like `shoal train --input`, and return its path."""
    inputs = Inputs(files=(str(train),), test=(str(test),))
    texts = TextsSource(inputs=inputs, settings=Settings(), max_malformed=0.0)
    return dataset_of_texts(texts, output=folder / "model", cache=folder)


def _distinct(examples: Sequence[Example]) -> list[Example]:
    first: dict[str, Example] = {}
    for example in examples:
        first.setdefault(example.text, example)
    return list(first.values())


def _examples(data: TextData, rows: Rows) -> list[Example]:
    """Return rows as texts of their words. The vocabulary has all words, because it is made from these rows."""
    found, start = [], 0
    whole = rows.whole_batch(np.arange(len(rows)), torch.device("cpu"))
    for length, label in zip(whole.lengths.tolist(), whole.labels.tolist(), strict=True):
        ids = whole.tokens[start : start + length].tolist()
        found.append(Example(" ".join(data.vocabulary[word - FIRST_WORD] for word in ids), label))
        start += length
    return found
