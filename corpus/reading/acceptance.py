"""Checks input after it was read: malformed lines, damaged files and missing classes."""

from collections import Counter
from collections.abc import Mapping, Sequence

from common.display import plural
from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.encodings import check_encoding_of_malformed
from corpus.reading.formats import LABEL_PAIRS, LABELS, NO_JSON_NUMBER, WRITE_NULL
from corpus.reading.lines import check_line_ends
from corpus.reading.sources import Source
from corpus.reading.tally import Tally, list_values, other_labels

DEFAULT_MAX_MALFORMED = 0.05
_PLACES_SHOWN = 3
_DRY_RUN = "`shoal preprocess --local --dry-run`"


def check_input(tally: Tally, max_malformed: float, settings: Settings, *, dry_run: bool = False) -> None:
    """Raise DataError if the input is damaged, has no lines, is not UTF-8, or has too many malformed lines or labels.

    `max_malformed`: the maximum share of malformed lines. If `dry_run` is true, the message does not suggest a dry run.
    """
    if reports := tally.damage_reports():
        raise DataError(f"{'; '.join(reports)}; download damaged files again, or skip them with --exclude")
    counts = tally.counts
    lines, malformed = counts["lines"], counts["malformed"]
    if not lines:
        raise DataError("the input has no lines; give files with reviews")
    check_encoding_of_malformed(tally)
    check_line_ends(tally)
    # Do not compare `malformed` with `max_malformed * lines`: in floating point, 0.29 * 100 is less than 29.
    if malformed / lines > max_malformed:
        listed = ", ".join(f"{number} {reason}" for reason, number in sorted(tally.malformed_by_reason.items()))
        cut = any(each.may_be_cut for each in tally.malformed_lines())
        quoting = "give --quoting doubled if quoted texts were cut at their newlines, " if cut else ""
        if any(NO_JSON_NUMBER.search(each.begins.encode()) for each in tally.malformed_lines()):
            quoting += f"as JSON has no NaN and Infinity, {WRITE_NULL}, "
        if settings.positive_label is None and (labels := Counter(other_labels(counts))):
            listed += f"; labels {'not in --classes' if settings.classes else 'of no known pair'}: "
            listed += list_values(labels)
            quoting += "add these labels to --classes, " if settings.classes else "name one with --positive-label, "
        look = "" if dry_run else f"check how Shoal reads the input with {_DRY_RUN}, or "
        raise DataError(
            f"{malformed} of {lines} lines are malformed ({listed}), more than {max_malformed:.0%}: {_places(tally)}; "
            f"{quoting}{look}raise --max-malformed"
        )
    check_negative_labels(tally, max_malformed, settings, "to read them as negative, raise --max-malformed")


def check_negative_labels(tally: Tally, max_malformed: float, settings: Settings, otherwise: str) -> None:
    """Raise DataError if more than a share `max_malformed` of the lines has a label that the sample does not show.

    `otherwise` says what to do if the labels are correct.
    """
    late, lines = _late_labels(other_labels(tally.counts), settings), tally.counts["lines"]
    if late and late.total() / lines > max_malformed:
        raise DataError(
            f"{late.total():,} of {lines:,} lines have a label that is neither {settings.positive_label!r} nor in the "
            f"sample of the input, more than {max_malformed:.0%}: {list_values(late)}; correct them, or {otherwise}"
        )


def label_notes(labels: Mapping[str, int], settings: Settings) -> list[str]:
    """Return a note about labels that are neither the positive label nor a class. `labels`: `tally.other_labels`."""
    if not labels or not settings.labelled:
        return []
    listed = list_values(Counter(labels))
    if settings.positive_label is None:
        return [f"texts with other labels were left out: {listed}"]
    late = _late_labels(labels, settings)
    doubt = f"; check {list_values(late)}, which the sample of the input does not show" if late else ""
    if len(labels) < 2 and not late:
        return []
    return [f"all labels except {settings.positive_label!r} are negative: {listed}{doubt}"]


def _late_labels(labels: Mapping[str, int], settings: Settings) -> Counter[str]:
    """Return the negative labels that the sample does not show.

    If it shows only the positive label, the most frequent other label is the one of the negative class.
    """
    if settings.positive_label is None:
        return Counter()
    known = settings.negative_labels or tuple(labels)[:1]
    return Counter({label: number for label, number in labels.items() if label not in known})


def _places(tally: Tally) -> str:
    """Return a string for a message that lists the first malformed line for each of up to three reasons."""
    firsts = {place.reason: place for place in reversed(tally.malformed_lines())}
    shown = list(reversed(firsts.values()))[:_PLACES_SHOWN]
    return ", ".join(f"{place.reason} in line {place.line} of {place.file} ({place.begins[:40]!r})" for place in shown)


def require_classes(by_code: Mapping[int, int], settings: Settings, sources: Sequence[Source]) -> None:
    """Raise DataError if a class has no training text.

    `by_code` maps each code to its number of training texts. This function does not reject labels that are no known
    pair; `first_positive_code` does.
    """
    found = {code for code, number in by_code.items() if number}
    training = [source.address for source in sources if not source.test]
    texts = f"{plural(sum(by_code.values()), 'training text')} in {training[0]}"
    if len(training) > 1:
        texts += f" and {plural(len(training) - 1, 'more file')}"
    if absent := [name for code, name in enumerate(settings.classes) if code not in found]:
        raise DataError(
            f"no text of the class {absent[0]} is among the {texts}; add texts of this class, or remove it from "
            "--classes"
        )
    have, classes = "one label", found
    if not settings.labelled:
        classes = {int(code >= settings.positive_from) for code in found}
        have = f"ratings from {settings.in_units(min(found))} to {settings.in_units(max(found))}" if found else ""
    if len(classes) == 1:
        raise DataError(
            f"all {texts} have {have}, so they are of one class; add texts of another class, or check how Shoal reads "
            f"the input with {_DRY_RUN}"
        )


def first_positive_code(by_code: Mapping[int, int], settings: Settings) -> int:
    """Return the smallest code of a positive text. The result for more than two classes is 0.

    `by_code` maps each code to its number of texts. Raises DataError if the settings name no positive label, and the
    labels are not exactly one of the known pairs.
    """
    if not settings.labelled:
        return settings.positive_from
    if settings.classes:
        return 0
    if settings.positive_label is not None:
        return 1
    occur = {code: number for code, number in sorted(by_code.items()) if number}
    pairs = [pair for pair in LABEL_PAIRS if occur.keys() <= set(pair)]
    if len(pairs) == 1:
        return pairs[0][1]
    if len(occur) == 1:
        ((code, number),) = occur.items()
        raise DataError(
            f"all {plural(number, 'text')} have the label {LABELS[code]}, so they are of one class; add texts of "
            "another class, or name the positive label with --positive-label"
        )
    seen = ", ".join(f"{LABELS[code]} ({plural(number, 'time')})" for code, number in occur.items())
    raise DataError(f"the labels are {seen}, which are not a known pair; name the positive one with --positive-label")
