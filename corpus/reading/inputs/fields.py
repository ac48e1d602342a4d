"""Chooses the text fields and the rating or label field of a file, from the options or else from known field names.

With a wrong field, preprocessing would create a useless dataset without an error. So a field is chosen only if exactly
one is possible. Otherwise, the error message lists the fields and names the option with which the user can choose.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from common.display import printable
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import LabelEncoder, MalformedLineError, label_key
from corpus.reading.inputs.layouts import candidates, is_labelled
from corpus.reading.inputs.values import are_pair
from corpus.reading.sources import ReadingOptions

_NEARLY_ALL, _MIN_CELLS = 0.95, 10
_SHOWN_FIELDS = 16
_SHOWN_LETTERS = 40


def reading_settings(labelled: bool, options: ReadingOptions) -> Settings:
    """Return settings with which a LabelEncoder reads ratings or labels according to the options.

    Do not use their `positive_from`, which has no meaning.
    """
    return Settings(
        labelled=labelled,
        positive_label=options.positive_label if labelled else None,
        classes=options.class_names if labelled else (),
        ragged=bool(options.classes),  # more than two classes require ragged rows
        rating_range=options.rating_range,
        rating_steps=options.rating_steps,
        rating_fraction=options.rating_fraction,
        positive_from=options.rating_range[1],
    )


class UnclearFieldsError(DataError):
    """The fields of a file are unclear. Texts without labels may need fewer options."""


class FieldChoice(NamedTuple):
    """Text fields, and the value field. A file in which all texts are of one class has no value field."""

    text: tuple[str, ...]
    value: str | None
    labelled: bool


def choose_fields(name: str, fields: Mapping[str, str], options: ReadingOptions, code: int | None) -> FieldChoice:
    """Choose the text fields and the value field by name. `fields` maps each field name to an example of its content.

    `name` is the name of the file, for messages. `code` is the class of all texts of the file, if it is known. Raises
    DataError if a field in the options does not exist, or if the choice is ambiguous.
    """
    _require_fields(name, fields, options)
    texts, values = candidates(fields)
    if options.text:
        texts = [options.text]
        of_same_object = [each for each in values if each.rpartition(".")[0] == options.text[0].rpartition(".")[0]]
        values = of_same_object or values
    given = options.rating or options.label
    values = [given] if given else [each for each in values if len(texts) != 1 or each not in texts[0]]
    found = [("text", [" ".join(each) for each in texts], "--text-field")]
    if code is None:
        found += [("rating or label", list(values), "--rating-field or --label-field")]
    if unclear := [each for each in found if len(each[1]) != 1]:
        listed = " and the ".join(f"{what} ({' or '.join(names)})" if names else what for what, names, _ in unclear)
        options_to_use = " and ".join(option for *_, option in unclear)
        raise UnclearFieldsError(
            f"it is not clear which field of {name} is the {printable(listed)}; give {options_to_use}. Its fields: "
            f"{list_with_examples(fields)}"
        )
    (text,) = texts
    if code is not None:
        return FieldChoice(text, None, True)
    (value,) = values
    if given or options.text:
        return FieldChoice(text, value, options.label is not None if given else is_labelled(value))
    if len({each.rpartition(".")[0] for each in (*text, value)}) > 1:
        raise UnclearFieldsError(
            f"in {name}, {printable(' '.join(text))!r} may be the text and {printable(value)!r} the rating, but "
            "they belong to different objects; name the fields with --text-field and --rating-field or --label-field"
        )
    return FieldChoice(text, value, is_labelled(value))


def choose_columns(name: str, rows: Sequence[Sequence[str]], options: ReadingOptions, code: int | None) -> FieldChoice:
    """Choose the text columns and the value column of a table without a header. Columns are numbered from 1.

    Without options, the first column must be a label or rating, and one or two columns of text must follow, as in the
    polarity datasets. A table with two columns is also accepted if only one of them can be the value. Raises DataError
    for any other table.
    """
    columns = {str(number): cell for number, cell in enumerate(rows[0], 1)}
    options_to_use = "--text-field" if code is not None else "--text-field and --rating-field or --label-field"
    unclear = DataError(
        f"the columns of {name} are not clear; give their names, or their numbers if there is no header, with "
        f"{options_to_use}, or remove the lines above the header; the first record is: {list_with_examples(columns)}"
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


def have_value_column(lines: Sequence[bytes], options: ReadingOptions) -> bool:
    """Return whether nearly all lines begin or end with a rating or label and a separator.

    Such lines are rows of a table. A single tab shows this; other separators also occur in texts, so they need several
    lines.
    """
    for separator in (b"\t", b",", b";", b"|"):
        if separator != b"\t" and len(lines) < _MIN_CELLS:
            return False
        for cells in (
            [line.split(separator)[:-1][:1] for line in lines],
            [line.split(separator)[1:][-1:] for line in lines],
        ):
            values = [cell.decode("utf-8", "replace").strip() for row in cells for cell in row]
            if _value_share(values, options) * len(values) >= _NEARLY_ALL * len(lines):
                return True
    return False


def _require_fields(name: str, fields: Mapping[str, str], options: ReadingOptions) -> None:
    if absent := next((each for each in options.fields if each not in fields), None):
        raise DataError(f"{name} has no field '{absent}'; its fields are: {list_with_examples(fields)}")


def _has_no_text(cells: Sequence[str]) -> bool:
    """Return whether a column has at least 10 cells, and nearly all of them are single words, dates or numbers."""
    plain = (each.isascii() and (len(each.split()) < 2 or each.lower() == each.upper()) for each in cells)
    return len(cells) >= _MIN_CELLS and sum(plain) >= _NEARLY_ALL * len(cells)


def list_with_examples(fields: Mapping[str, str]) -> str:
    listed = [
        f"{field} ({text[:_SHOWN_LETTERS]}{'...' if len(text) > _SHOWN_LETTERS else ''})"
        for field, text in list(fields.items())[:_SHOWN_FIELDS]
    ]
    return printable(", ".join(listed)) + (", ..." if len(fields) > _SHOWN_FIELDS else "")


def _value_share(cells: Sequence[str], options: ReadingOptions) -> float:
    return sum(_is_value(cell, options) for cell in cells) / max(len(cells), 1)


def _is_value(cell: str, options: ReadingOptions) -> bool:
    if options.classes:
        return label_key(cell) in map(label_key, options.class_names)
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
    """Return whether the values of a column without a name are labels and not ratings.

    Raises DataError if all values are 1, or all values are 2, because these could be ratings or labels.
    """
    if options.classes:
        return True
    if set(values) in ({"1"}, {"2"}):
        raise DataError(
            f"column {column} of {name} may be ratings or labels: its only value so far is {next(iter(values))!r}; "
            "choose with "
            f"--rating-field {column} or --label-field {column}"
        )
    return all(are_pair(Counter([value])) for value in values) and are_pair(values)
