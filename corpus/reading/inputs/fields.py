"""Chooses the text fields and the rating or label field of a record, from the options or else from known names.

A wrong field makes a dataset that looks right and is useless. So a field is chosen only if exactly one fits. Otherwise
the error lists the fields and names the option.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from common.display import printable
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import LabelEncoder, MalformedLineError, class_name
from corpus.reading.inputs.layouts import candidates, is_guess, is_labelled
from corpus.reading.inputs.values import are_pair
from corpus.reading.sources import ReadingOptions

_NEARLY_ALL, _MIN_CELLS = 0.95, 10
_SHOWN_FIELDS = 16
_SHOWN_LETTERS = 40


def reading_settings(labelled: bool, options: ReadingOptions) -> Settings:
    """Return settings that read ratings or labels according to the options. Their `positive_from` has no meaning."""
    return Settings(
        labelled=labelled,
        positive_label=options.positive_label if labelled else None,
        classes=options.class_names if labelled else (),
        ragged=bool(options.classes),  # more than two classes require it
        rating_range=options.rating_range,
        rating_steps=options.rating_steps,
        rating_fraction=options.rating_fraction,
        positive_from=options.rating_range[1],
    )


class FieldChoice(NamedTuple):
    """The text fields and the value field. There is no value field if the whole file has one class."""

    text: tuple[str, ...]
    value: str | None
    labelled: bool
    notes: tuple[str, ...] = ()
    """Warnings about fields that were chosen only by their names."""


def choose_fields(name: str, fields: Mapping[str, str], options: ReadingOptions, code: int | None) -> FieldChoice:
    """Choose among named fields. `fields` maps each field to an example of its content.

    `name` is the name of the file. `code` is the class of all its texts, if known. Raises DataError if a field in the
    options does not exist, or if the choice is ambiguous.
    """
    _require_fields(name, fields, options)
    texts, values = candidates(fields)
    if options.text:
        texts = [options.text]
    given = options.rating or options.label
    values = [given] if given else [each for each in values if len(texts) != 1 or each not in texts[0]]
    for what, found, option in (
        ("text", [" ".join(each) for each in texts], "--text-field"),
        ("rating or label", ["the file's"] if code is not None else values, "--rating-field or --label-field"),
    ):
        if len(found) != 1:
            which = printable(" or ".join(found))
            raise DataError(
                f"it is not clear which field of {name} is the {what}{which and f' ({which})'}; name it with {option}. "
                f"Its fields: {list_with_examples(fields)}"
            )
    (text,) = texts
    if code is not None:
        return FieldChoice(text, None, True)
    (value,) = values
    if given or options.text:
        return FieldChoice(text, value, options.label is not None if given else is_labelled(value))
    notes: tuple[str, ...] = ()
    if is_guess(text, value):
        listed, kind = printable(" ".join(text)), "label" if is_labelled(value) else "rating"
        notes = (
            f"{listed!r} is read as the text and {printable(value)!r} as the {kind}, because of their names; name "
            "others with --text-field and --rating-field or --label-field",
        )
    return FieldChoice(text, value, is_labelled(value), notes)


def choose_columns(name: str, rows: Sequence[Sequence[str]], options: ReadingOptions, code: int | None) -> FieldChoice:
    """Choose among columns without names, which are numbered from 1.

    Without options this works for files like the polarity datasets: a label or rating, then one or two texts. It also
    works for two columns if only one of them can be the value. Raises DataError for all other files.
    """
    columns = {str(number): cell for number, cell in enumerate(rows[0], 1)}
    unclear = DataError(
        f"the columns of {name} are not clear; give their names, or their numbers if there is no header, with "
        f"--text-field and --rating-field or --label-field; the first record is: {list_with_examples(columns)}"
    )
    _require_fields(name, columns, options)
    if code is not None:
        first, *below = [row[0].split() for row in rows]
        is_name = len(first) == 1 and bool(below) and all(len(each) > 1 for each in below)
        if not options.text and (len(columns) > 1 or is_name):
            raise unclear
        return FieldChoice(options.text or ("1",), None, True)
    cells = {each: [row[int(each) - 1].strip() for row in rows] for each in columns if each not in options.text}
    value_columns = [each for each in cells if _value_share(cells[each], options) >= _NEARLY_ALL]
    given = options.rating or options.label
    if given is None and len(value_columns) != 1:
        raise unclear
    value = given or value_columns[0]
    others = tuple(each for each in columns if each != value)
    if not options.text and (
        not (len(others) == 1 or (len(others) == 2 and value == "1"))
        or (len(others) > 1 and any(_has_no_text(cells[each]) for each in others))
    ):
        raise unclear
    if given is None and not _is_value(cells[value][0], options):
        raise unclear  # the first record is a header
    labelled = options.label is not None if given else _has_labels(name, Counter(cells[value]), value, options)
    return FieldChoice(options.text or others, value, labelled)


def _require_fields(name: str, fields: Mapping[str, str], options: ReadingOptions) -> None:
    if absent := next((each for each in options.fields if each not in fields), None):
        raise DataError(f"{name} has no field '{absent}'; its fields are: {list_with_examples(fields)}")


def _has_no_text(cells: Sequence[str]) -> bool:
    """Return whether nearly all cells of a column are single words, dates or numbers. False for fewer than 10 cells."""
    plain = (each.isascii() and (len(each.split()) < 2 or each.lower() == each.upper()) for each in cells)
    return len(cells) >= _MIN_CELLS and sum(plain) >= _NEARLY_ALL * len(cells)


def list_with_examples(fields: Mapping[str, str]) -> str:
    listed = [
        f"{field} ({text[:_SHOWN_LETTERS]}{'...' if len(text) > _SHOWN_LETTERS else ''})"
        for field, text in list(fields.items())[:_SHOWN_FIELDS]
    ]
    return printable(", ".join(listed)) + (", ..." if len(fields) > _SHOWN_FIELDS else "")


def _value_share(cells: Sequence[str], options: ReadingOptions) -> float:
    return sum(_is_value(cell, options) for cell in cells) / len(cells)


def _is_value(cell: str, options: ReadingOptions) -> bool:
    if options.classes:
        return class_name(cell) in options.class_names
    return are_pair(Counter([cell])) or _is_rating(cell, reading_settings(False, options))


@cache
def _encoder(settings: Settings) -> LabelEncoder:
    return LabelEncoder(settings)


def _is_rating(cell: str, settings: Settings) -> bool:
    try:
        _encoder(settings).encode(cell)
    except MalformedLineError:
        return False
    return True


def _has_labels(name: str, values: Counter[str], column: str, options: ReadingOptions) -> bool:
    """Return whether a column without a name has labels. Raises DataError if its only value is 1 or 2."""
    if options.classes:
        return True
    if set(values) in ({"1"}, {"2"}):
        raise DataError(
            f"column {column} of {name} may be ratings or labels: its only value so far is {next(iter(values))!r}; "
            "choose with "
            f"--rating-field {column} or --label-field {column}"
        )
    return all(are_pair(Counter([value])) for value in values) and are_pair(values)
