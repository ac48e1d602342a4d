"""Input from which nothing can be learnt is refused with its files, their value, and what to do."""

from dataclasses import replace

import pytest

from common.errors import FinalError
from corpus.dataset_settings import Settings
from corpus.reading.acceptance import require_classes
from corpus.reading.formats import Format
from corpus.reading.sources import Source

FILE = Source(address="/in.csv", size=1, identity="x", format=Format(kind="text"))
TEST = replace(FILE, address="/test.csv", test=True)
LABELS = Settings(labelled=True)
ONE = Settings(labelled=True, positive_label="good")
THREE = Settings(labelled=True, ragged=True, classes=("art", "film", "war"))
HALVES = Settings(rating_steps=2, rating_range=(2, 10), positive_from=8)


@pytest.mark.parametrize(
    ("by_code", "settings", "wrong"),
    [
        ({9: 5}, LABELS, r"all 5 texts to learn from in /in\.csv have the label 'positive'"),
        ({1: 5, 0: 0}, ONE, "have the label 'good'"),
        ({0: 5}, ONE, "have another label than 'good'"),
        ({2: 5}, THREE, "have the label 'war'"),
        ({0: 3, 2: 2}, THREE, r"none of the 5 texts to learn from in /in\.csv is of the class film"),
        ({9: 5}, HALVES, r"have the rating 4\.5"),
        ({8: 3, 9: 2}, HALVES, r"have ratings from 4 to 4\.5, of which none is negative"),
        ({2: 3, 7: 2}, HALVES, r"have ratings from 1 to 3\.5, of which none is positive"),
    ],
)
def test_texts_of_one_class_are_refused(by_code: dict[int, int], settings: Settings, wrong: str) -> None:
    with pytest.raises(FinalError, match=rf"{wrong}.*; give "):
        require_classes(by_code, settings, [TEST, FILE])


@pytest.mark.parametrize(
    ("by_code", "settings"),
    [
        *(({0: 1, 1: 1}, LABELS), ({0: 1, 4: 1}, LABELS), ({0: 9, 1: 1}, ONE), ({7: 1, 8: 1}, HALVES)),
        ({0: 1, 1: 1, 2: 1}, THREE),
    ],
)
def test_texts_of_all_classes_are_accepted(by_code: dict[int, int], settings: Settings) -> None:
    require_classes(by_code, settings, [FILE])


def test_files_of_one_class_and_their_number_are_named() -> None:
    files = [replace(FILE, address=f"/{code}.txt", code=code) for code in (1, 0)]
    with pytest.raises(FinalError, match=r"in /1\.txt and 1 more file are of the positive class"):
        require_classes({1: 9}, LABELS, files)
