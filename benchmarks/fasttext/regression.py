"""Logistic regression on n-grams, by scikit-learn: what a few lines of Python reach."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.fasttext.piles import Example, Parts

_STRENGTHS, _WEIGHTS = (1.0, 3.0, 10.0, 30.0, 100.0), (None, "balanced")
"""Inverses of the regularisation's strength, and weights of the classes."""
_PARTS = 5
"""In which the rows are held out in turn for the models that are stacked."""

Texts = Sequence[str]
Probabilities = npt.NDArray[np.float64]
"""(n,): of the positive class, for each text."""
Predict = Callable[[Texts], Probabilities]
_Fit = Callable[[Texts, Sequence[int]], Predict]


def tfidf(parts: Parts) -> Predict:
    """On TF-IDF of words and pairs, with the settings that do best on the rows held out."""
    values = _tfidf()
    (texts, labels), (held_out, held_out_labels) = map(_columns, (parts.learnt, parts.held_out))
    learnt, others = values.fit_transform(texts), values.transform(held_out)
    models = [_regression(strength, weight).fit(learnt, labels) for strength, weight in _SETTINGS]
    best = max(models, key=lambda model: model.score(others, held_out_labels))
    return lambda some: _positive(best, values.transform(some))


def nb_svm(parts: Parts) -> Predict:
    """On log-count ratios of up to three words (Wang and Manning 2012)."""
    return _nb_svm(*_columns([*parts.learnt, *parts.held_out]))


def stacked(parts: Parts) -> Predict:
    """On the log-odds of `nb_svm`, and of models on TF-IDF of words and pairs, and of 2 to 5 characters; these are of
    rows that they have not learnt from."""
    texts, labels = _columns([*parts.learnt, *parts.held_out])
    fits: Sequence[_Fit] = (_nb_svm, _of(_tfidf), _of(_char_tfidf))
    part = np.random.default_rng(0).integers(_PARTS, size=len(texts))
    logits = np.empty((len(texts), len(fits)))
    for held_out in range(_PARTS):
        own, others = np.flatnonzero(part != held_out), np.flatnonzero(part == held_out)
        for column, fit in enumerate(fits):
            predict = fit([texts[each] for each in own], [labels[each] for each in own])
            logits[others, column] = _log_odds(predict([texts[each] for each in others]))
    whole, last = [fit(texts, labels) for fit in fits], _regression().fit(logits, labels)
    return lambda some: _positive(last, np.stack([_log_odds(predict(some)) for predict in whole], 1))


CASES: Mapping[str, Callable[[Parts], Predict]] = {
    "TF-IDF, logistic regression": tfidf,
    "NB-SVM": nb_svm,
    "three regressions, stacked": stacked,
}
_SETTINGS = tuple(itertools.product(_STRENGTHS, _WEIGHTS))


def _nb_svm(texts: Texts, labels: Sequence[int]) -> Predict:
    from sklearn.feature_extraction.text import CountVectorizer

    values = CountVectorizer(ngram_range=(1, 3), binary=True, tokenizer=str.split, token_pattern=None, lowercase=False)
    found, positive = values.fit_transform(texts).astype(float), np.array(labels) == 1
    often, seldom = (1 + np.asarray(found[rows].sum(0)).ravel() for rows in (positive, ~positive))
    ratios = np.log(often / often.sum()) - np.log(seldom / seldom.sum())
    model = _regression().fit(found.multiply(ratios).tocsr(), labels)
    return lambda some: _positive(model, values.transform(some).multiply(ratios).tocsr())


def _of(vectorizer: Callable[[], Any]) -> _Fit:
    def fit(texts: Texts, labels: Sequence[int]) -> Predict:
        values = vectorizer()
        model = _regression(10.0).fit(values.fit_transform(texts), labels)
        return lambda some: _positive(model, values.transform(some))

    return fit


def _tfidf() -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer  # of requirements-bench.txt

    values = TfidfVectorizer(ngram_range=(1, 2), tokenizer=str.split, token_pattern=None, lowercase=False)
    return values.set_params(sublinear_tf=True)


def _char_tfidf() -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(2, 5), analyzer="char_wb", sublinear_tf=True, min_df=2, lowercase=False)


def _regression(strength: float = 1.0, weight: str | None = None) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=strength, class_weight=weight, solver="liblinear")


def _positive(model: Any, values: Any) -> Probabilities:
    found: Probabilities = model.predict_proba(values)[:, 1]
    return found


def _log_odds(probabilities: Probabilities) -> Probabilities:
    kept = probabilities.clip(1e-9, 1 - 1e-9)
    found: Probabilities = np.log(kept / (1 - kept))
    return found


def _columns(examples: Sequence[Example]) -> tuple[list[str], list[int]]:
    return [example.text for example in examples], [example.label for example in examples]
