"""Logistic regression on TF-IDF of words and pairs, by scikit-learn, as a baseline."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from benchmarks.fasttext.piles import Parts

_STRENGTHS, _WEIGHTS = (1.0, 3.0, 10.0, 30.0, 100.0), (None, "balanced")
"""Inverse regularisation strengths, and class weights."""

Probabilities = npt.NDArray[np.float64]
"""Probability of the positive class for each text, (n,)."""
Predict = Callable[[Sequence[str]], Probabilities]


def tfidf(parts: Parts) -> Predict:
    """Train with the best settings on the held-out rows, and return the predicting function."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # in requirements-bench.txt
    from sklearn.linear_model import LogisticRegression

    values = TfidfVectorizer(
        ngram_range=(1, 2), tokenizer=str.split, token_pattern=None, lowercase=False, sublinear_tf=True
    )
    (texts, labels), (held_out, held_out_labels) = (
        zip(*((each.text, each.label) for each in examples), strict=True)
        for examples in (parts.learned, parts.held_out)
    )
    learned, others = values.fit_transform(texts), values.transform(held_out)
    models = [
        LogisticRegression(C=strength, class_weight=weight, solver="liblinear").fit(learned, labels)
        for strength, weight in itertools.product(_STRENGTHS, _WEIGHTS)
    ]
    best = max(models, key=lambda model: model.score(others, held_out_labels))

    def predict(some: Sequence[str]) -> Probabilities:
        found: Probabilities = best.predict_proba(values.transform(some))[:, 1]
        return found

    return predict
