"""`shoal evaluate` warns where a classifier learnt from the texts that it is evaluated on."""

import json
from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest

from bootstrap.cli.main import main
from corpus.text import FIRST_WORD
from tests.bootstrap.cli import known_model
from trainer.classification.labelling import Labeller
from trainer.classification.learnt_rows import text_hashes
from trainer.classification.loading import load_model

LEARNT = ["good bad", "fair good", "dull bad bad"]


@pytest.mark.parametrize(("text", "learnt"), [("good bad", 1.0), ("bad good", 1.0), ("bad dull", 0.0)])
def test_a_warning_says_that_training_rows_are_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, learnt: float
) -> None:
    (tmp_path / "plain").mkdir()
    known_model.save(tmp_path / "plain")
    encoded = Labeller(load_model(tmp_path / "plain")).encoded(LEARNT)
    hashes = np.sort(text_hashes(*encoded, words=len(known_model.WORDS) + FIRST_WORD))
    kept = {"rows": 3, "hashed": 3, "smallest": b64encode(hashes.tobytes()).decode()}
    known_model.save(tmp_path, training_rows=kept)
    (tmp_path / "a.json").write_text(json.dumps({"reviewText": text, "overall": 5}) + "\n")
    assert main(["evaluate", "--model", str(tmp_path), str(tmp_path / "a.json"), "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["learnt_share"] == learnt
    warning = "warning: the model learnt from about 100.0% of these texts"
    assert (warning in " ".join(printed.err.split())) == bool(learnt)
