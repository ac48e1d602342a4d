"""Chooses the fields of a record that are its text and its rating or label, by the options or else by known names.

Do not guess, because a wrong field makes a dataset that looks right and is useless. A choice is made only where exactly
one fits best, with a note where others fit less closely. Otherwise the error lists the fields and names the option.
"""

import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple, NoReturn

from common.display import printable
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.formats import (
    LABEL_PAIRS,
    LABELS,
    MISSING,
    Codes,
    Format,
    MalformedLineError,
    class_name,
    rating_text,
    usual_label,
)
from corpus.reading.inputs.names import is_label_name, is_value_name, known_texts, known_values
from corpus.reading.sources import ReadingOptions

_PAIRS = tuple({LABELS[negative], LABELS[positive]} for negative, positive in LABEL_PAIRS)
_MOST, _FEW = 0.95, 10
_SHOWN_FIELDS = 16
_SHOWN_LETTERS = 40
_SHOWN_LABELS = 8
_MOST_NAMED = 32
"""More labels than these are hardly classes, and their names are no help."""


def reading_settings(labelled: bool, options: ReadingOptions) -> Settings:
    """Settings that read ratings or labels as the options say; their threshold between the classes has no meaning."""
    return Settings(
        labelled=labelled,
        positive_label=options.positive_label if labelled else None,
        classes=options.class_names if labelled else (),
        ragged=bool(options.classes),  # as rows of so many classes have to be
        rating_range=options.rating_range,
        rating_steps=options.rating_steps,
        rating_fraction=options.rating_fraction,
        positive_from=options.rating_range[1],
    )


class OneValueError(DataError):
    """A column has shown only one value, which may be a rating or a label; the rest of the file may decide."""


class FieldChoice(NamedTuple):
    """The fields of the text and the field of the value; `value` is None where the whole file has one class."""

    text: tuple[str, ...]
    value: str | None
    labelled: bool
    notes: tuple[str, ...] = ()
    """Sentences on choices that other fields fit, too."""


def choose_fields(name: str, fields: Mapping[str, str], options: ReadingOptions, code: int | None) -> FieldChoice:
    """Choose among named fields; `fields` maps each to an example of its content.

    `name` is the file's, `code` the class of all of its texts where that is known. Raises DataError where a
    field that the options name does not exist, or where it is not clear which field is meant.
    """
    for each in options.fields:
        if each not in fields:
            raise DataError(f"{name} has no field '{each}'; its fields are: {list_with_examples(fields)}")
    text, text_notes = _choose_text(name, fields, options)
    if code is not None:
        return FieldChoice(text, None, True, text_notes)
    if given := options.rating or options.label:
        return FieldChoice(text, given, options.label is not None, text_notes)
    values = known_values(fields, text)
    if len(values.likeliest) != 1:
        which = printable(" or ".join([*values.likeliest, *values.others]))
        raise DataError(
            f"it is not clear which field of {name} is the rating or label{which and f' ({which})'}; name it by "
            f"--rating-field or --label-field. Its fields: {list_with_examples(fields)}"
        )
    value = values.likeliest[0]
    notes = _notes("the rating or label", value, values.others, "--rating-field or --label-field")
    return FieldChoice(text, value, is_label_name(value), (*text_notes, *notes))


def _choose_text(
    name: str, fields: Mapping[str, str], options: ReadingOptions
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields of the text, and notes on other fields that may be meant."""
    if options.text:
        return options.text, ()
    texts = known_texts(fields)
    listed = [" ".join(each) for each in (*texts.likeliest, *texts.others)]
    if len(texts.likeliest) != 1:
        which = printable(" or ".join(listed))
        raise DataError(
            f"it is not clear which field of {name} is the text{which and f' ({which})'}; name it by --text-field. "
            f"Its fields: {list_with_examples(fields)}"
        )
    return texts.likeliest[0], _notes("the text", listed[0], listed[1:], "--text-field")


def _notes(what: str, chosen: str, others: Sequence[str], option: str) -> tuple[str, ...]:
    """A note that the field was chosen by its name although others fit, if any do."""
    if not others:
        return ()
    listed = " and ".join(map(repr, (chosen, *others)))
    return (f"{printable(listed)} may each be {what}; {printable(chosen)!r} is taken, and another by {option}",)


def are_field_names(fields: Collection[str], code: int | None) -> bool:
    """Whether these are known names of fields, and not the first record of a file without a header."""
    has_value = code is not None or any(map(is_value_name, fields))
    return has_value and len(known_texts(fields).likeliest) == 1


def has_field_name(fields: Collection[str]) -> bool:
    return bool(known_texts(fields).likeliest) or any(map(is_value_name, fields))


def choose_columns(name: str, rows: Sequence[Sequence[str]], options: ReadingOptions, code: int | None) -> FieldChoice:
    """Choose among columns without names, which are numbered from 1.

    Without options this works for files like the polarity sets (a label or rating, then one or two texts), and for two
    columns of which only one can be the value. Raises DataError for all others.
    """
    width = len(rows[0])
    columns = {str(number + 1): rows[0][number] for number in range(width)}
    for each in options.fields:
        if each not in columns:
            raise DataError(
                f"{name} has no column '{each}': its columns have no names, and are numbered from 1: "
                f"{list_with_examples(columns)}"
            )
    if code is not None:
        text = options.text or (("1",) if width == 1 else _fail_unclear(name, columns))
        return FieldChoice(text, None, True)
    value = options.rating or options.label or _value_column(rows, options)
    if value is None:
        return _fail_unclear(name, columns)
    others = tuple(each for each in columns if each != value)
    if not options.text and not (len(others) == 1 or (len(others) == 2 and value == "1")):
        _fail_unclear(name, columns)
    if options.rating or options.label:
        labelled = options.label is not None
    else:
        labelled = bool(options.classes) or _holds_labels(name, {row[int(value) - 1].strip() for row in rows}, value)
    texts = [each for each in others if not _holds_no_text([row[int(each) - 1].strip() for row in rows])]
    if options.text or len(texts) != 1 or len(others) == 1:
        return FieldChoice(options.text or others, value, labelled)
    (left_out,) = set(others) - set(texts)
    note = (
        f"column {left_out} has numbers or single words and is left out; if it is text: --text-field {' '.join(others)}"
    )
    return FieldChoice(tuple(texts), value, labelled, (note,))


def _holds_no_text(cells: Sequence[str]) -> bool:
    """Whether nearly all cells of a column, of more than a few, are single words, dates or numbers."""
    plain = (each.isascii() and (len(each.split()) < 2 or each.lower() == each.upper()) for each in cells)
    return len(cells) >= _FEW and sum(plain) >= _MOST * len(cells)


def refuse_unknown_header(name: str, rows: Sequence[Sequence[str]], value: int, options: ReadingOptions) -> None:
    """Raise DataError where the first row has no rating or label in the column `value`, whose others have."""
    header, (named, *cells) = [cell.strip() for cell in rows[0]], [row[value].strip() for row in rows]
    if _is_value(named, options):
        return
    able = {
        "--label-field": all(usual_label(cell) in LABELS for cell in cells),
        "--rating-field": all(_is_rating(cell, reading_settings(False, options)) for cell in cells),
    }
    field = " or ".join(f"{option} {shlex.quote(named)}" for option in able if able[option] or not any(able.values()))
    raise DataError(
        f"the first line of {name} looks like a header of unknown names ({printable(', '.join(header))}); name its "
        f"fields: --text-field {shlex.join(each for each in header if each != named)} {field}"
    )


def header_notes(columns: Sequence[str]) -> tuple[str, ...]:
    """A note that the first line is taken for a header, although columns were given by number."""
    return (f"the first line ({printable(', '.join(columns))[:_SHOWN_LETTERS]}) is taken for a header",)


def name_notes(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """A note on one column of texts whose first row is a word, which may be the column's name."""
    first, *others = [row[0].strip() for row in rows]
    if len(rows[0]) > 1 or len(first.split()) != 1 or not others or not all(" " in other for other in others):
        return ()
    option = f"--text-field {shlex.quote(first)}"
    return (f"the first line ({printable(first)}) is a text; if it is the column's name, give {option}",)


def is_header_row(rows: Sequence[Sequence[str]], options: ReadingOptions) -> bool:
    """Whether the first row is a header although the user gave columns by number: only its value is not a value."""
    value = options.rating or options.label
    if value is None or not value.isdecimal() or not 0 < int(value) <= len(rows[0]) or len(rows) < 2:
        return False
    cells = [row[int(value) - 1].strip() for row in rows]
    if rating_text(cells[0])[0] is not None or cells[0].lower() in MISSING:
        return False
    if options.positive_label is None:
        return not _is_value(cells[0], options) and _value_share(cells[1:], options) > 1 - _MOST
    return is_value_name(cells[0]) or cells[0].lower() == "class"


def with_column_names(options: ReadingOptions, columns: Sequence[str]) -> ReadingOptions:
    """The options with the names of columns that they give by number."""

    def name(each: str) -> str:
        number = each.isdecimal() and each not in columns and 0 < int(each) <= len(columns)
        return columns[int(each) - 1] if number else each

    return replace(
        options,
        text=tuple(map(name, options.text)),
        rating=options.rating and name(options.rating),
        label=options.label and name(options.label),
        keep=tuple(map(name, options.keep)),
    )


def list_with_examples(fields: Mapping[str, str]) -> str:
    listed = [
        f"{field} ({text[:_SHOWN_LETTERS]}{'...' if len(text) > _SHOWN_LETTERS else ''})"
        for field, text in list(fields.items())[:_SHOWN_FIELDS]
    ]
    return printable(", ".join(listed)) + (", ..." if len(fields) > _SHOWN_FIELDS else "")


def _fail_unclear(name: str, columns: Mapping[str, str]) -> NoReturn:
    raise DataError(
        f"the columns of {name} are not clear; give their numbers, with --text-field N... and "
        f"--rating-field N or --label-field N; its first record is: {list_with_examples(columns)}"
    )


def _value_column(rows: Sequence[Sequence[str]], options: ReadingOptions) -> str | None:
    """The one column that can be a rating or a label, by its values."""
    width = len(rows[0])
    able = [
        str(number + 1)
        for number in range(width)
        if str(number + 1) not in options.text and _value_share([row[number] for row in rows], options) >= _MOST
    ]
    return able[0] if len(able) == 1 else None


def _value_share(cells: Sequence[str], options: ReadingOptions) -> float:
    return sum(_is_value(cell.strip(), options) for cell in cells) / len(cells)


def _is_value(cell: str, options: ReadingOptions) -> bool:
    if options.classes:
        return class_name(cell) in options.class_names
    return usual_label(cell) in LABELS or _is_rating(cell, reading_settings(False, options))


@cache
def _codes(settings: Settings) -> Codes:
    return Codes(settings)


def _is_rating(cell: str, settings: Settings) -> bool:
    try:
        _codes(settings).code_of(cell)
    except MalformedLineError:
        return False
    return True


def _holds_labels(name: str, values: set[str], column: str) -> bool:
    """Whether a column without a name has labels: those of a known pair. Raises OneValueError for one value alone."""
    values = set(map(usual_label, values))
    known = [value for value in values if value in LABELS]
    if len(values) == 1 and known in (["1"], ["2"]):
        raise OneValueError(
            f"column {column} of {name} may be ratings or labels: only '{known[0]}' was seen; choose by "
            f"--rating-field {column} or --label-field {column}"
        )
    return any(known and set(known) <= pair for pair in _PAIRS) and len(known) == len(values)


def with_signed_labels(values: Counter[str], options: ReadingOptions) -> ReadingOptions:
    """The options, with 1 as the positive label where the labels are 1 and -1."""
    if options.positive_label is not None or options.classes or len(values) != 2:
        return options
    negative, positive = sorted(values, key=lambda label: not label.startswith("-"))
    pair = usual_label(positive.removeprefix("+")) == "1" and negative in ("-1", "-1.0")
    return replace(options, positive_label=positive) if pair else options


def check_labels(learnt: Counter[str], tested: Counter[str], options: ReadingOptions) -> None:
    """Raise DataError for labels of which the positive ones are not known: samples of those to learn from, and of those
    of the files that are for the test alone, by `label_text`.

    A single label is accepted, because the rest of the input may have the other one of its pair.
    """
    values = learnt + tested
    if options.positive_label is not None or options.classes or not values:
        return
    if _are_pair(values) and (not tested or _are_pair(tested)):
        return
    names = sorted(filter(None, {class_name(value) for value in values}), key=_name_order)
    several = ""
    if 2 < len(names) <= _MOST_NAMED:
        several = f"; or name all classes, those that were not seen here, too: --classes {shlex.join(names)}"
    positive = f"name the positive one by --positive-label VALUE: all others are negative then{several}"
    if tested and _are_pair(learnt):
        others = Counter({value: count for value, count in tested.items() if value not in learnt})
        raise DataError(
            "--test-input has labels that the beginnings of the texts to learn from do not have: "
            f"{list_values(others)}; leave out the texts of these, or {positive}"
        )
    raise DataError(f"the labels are {list_values(values)}, and it is not clear which are positive; {positive}")


def check_notations(found: Mapping[str, Counter[str]]) -> None:
    """Raise DataError where files, by their addresses, have labels each of a known pair, but not of the same one."""
    seen: dict[frozenset[str], str] = {}
    for address, values in found.items():
        if len(values) == 2 and frozenset(values) not in seen and _are_pair(values):
            seen[frozenset(values)] = address
    for address in seen.values():
        if not _are_pair(found[address] + found[first := next(iter(seen.values()))]):
            raise DataError(
                f"{first} has the labels {list_values(found[first])}, but {address} has {list_values(found[address])}; "
                "write the same labels in all files"
            )


def check_headers(found: Mapping[str, Format]) -> None:
    """Raise DataError where only some tables of one form, by their addresses, have a header, and others have their text
    and value in other columns, by the values alone."""
    forms: dict[tuple[str, int], dict[tuple[bool, tuple[int, ...]], str]] = {}
    for address, form in found.items():
        if form.kind in ("csv", "separated"):
            places = tuple(form.columns.index(each) for each in (*form.text, form.value) if each)
            forms.setdefault((form.separator, len(form.columns)), {}).setdefault((form.header, places), address)
    for seen in forms.values():
        named = next((address for (header, _), address in seen.items() if header), None)
        others = (address for (header, places), address in seen.items() if not header and (True, places) not in seen)
        if named and (other := next(others, None)):
            raise DataError(
                f"{named} has a header, but {other}, which has as many columns, has none, and seems to have its text "
                "or rating in others of them; join the parts of a file by cat, or give each its header"
            )


def _are_pair(values: Counter[str]) -> bool:
    """Whether nearly all of these labels are of one known pair."""
    known = Counter(usual_label(value) for value in values.elements() if usual_label(value) in LABELS)
    rest = values.total() - known.total()
    return bool(known) and any(set(known) <= pair for pair in _PAIRS) and rest <= (1 - _MOST) * values.total()


def check_classes(values: Counter[str], classes: Sequence[str], max_malformed: float) -> None:
    """Raise DataError where a larger share of the labels than `max_malformed` is none of the classes' names."""
    others = Counter({value: count for value, count in values.items() if class_name(value) not in classes})
    if others and others.total() / values.total() > max_malformed:
        raise DataError(
            f"{others.total():,} of the first {values.total():,} labels are none of --classes: {list_values(others)}; "
            "name them there, too, or leave their texts out by a higher --max-malformed"
        )


def list_values(values: Counter[str]) -> str:
    """The most frequent of some labels or ratings with their counts, for a message."""
    listed = ", ".join(f"{value[:_SHOWN_LETTERS]!r} ({count})" for value, count in values.most_common(_SHOWN_LABELS))
    return listed + (", ..." if len(values) > _SHOWN_LABELS else "")


def _name_order(name: str) -> tuple[bool, int, str]:
    """Numbers first, by their size, then all others."""
    number = name.isascii() and name.isdigit()
    return not number, int(name) if number and len(name) < _SHOWN_LETTERS else 0, name
