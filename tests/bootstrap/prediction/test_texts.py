"""Which texts of files a model has not learnt from."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bootstrap.prediction.texts import held_out
from corpus.dataset_settings import DEFAULT, REFERENCE, Settings
from corpus.rules import in_test_set
from corpus.text import digest, words
from corpus.tokens import tokens
from tests.bootstrap.cli.answered_files import json_lines


@pytest.mark.parametrize(("settings", "rule"), [(DEFAULT, tokens), (REFERENCE, words)])
def test_the_demo_shows_only_texts_that_no_model_has_learnt_from(
    settings: Settings, rule: Callable[[str], list[str]], tmp_path: Path
) -> None:
    texts = [f"lamp number word{chr(97 + n // 26)}{chr(97 + n % 26)}, bright" for n in range(400)]
    for half in (0, 1):
        (tmp_path / f"{half}.json").write_bytes(json_lines([(text, 5) for text in texts[half::2] * 2 + ["the of", ""]]))
    shown = list(held_out([str(tmp_path / "0.json"), str(tmp_path / "1.json")], settings))
    tested = [text for text in texts[0::2] + texts[1::2] if in_test_set(digest(rule(text)), 0.1)]
    assert not in_test_set(digest(tokens("the of")), 0.1)
    assert shown == tested
    assert 10 < len(shown) < 100
