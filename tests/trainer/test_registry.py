"""Every model is one of a kind of task."""

from trainer.classification.task import Classification
from trainer.embeddings.task import CharacterEmbedding, SkipGramEmbedding
from trainer.registry import AUTO, CLASSIFIERS, MODELS
from trainer.task import task_class


def test_every_model_belongs_to_one_kind_of_task() -> None:
    of_texts = dict.fromkeys((AUTO, *CLASSIFIERS), Classification)
    of_words = {"skipgram": SkipGramEmbedding, "char-lstm": CharacterEmbedding}
    assert {name: task_class(name) for name in MODELS} == {**of_texts, **of_words}
