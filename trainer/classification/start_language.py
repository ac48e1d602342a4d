"""A language model as the start of a classifier, on a dataset of another vocabulary."""

from dataclasses import replace

from common.errors import TrainingError
from corpus.text import word_ids
from trainer.classification.data import StartWeights, TextData
from trainer.classification.renumbering import renumbered
from trainer.classification.start_weights import describe_test_rows, require_rule_of_words, share_known, with_new_words
from trainer.config import TrainConfig
from trainer.language.loading import load_language_model

_OF_THE_SOFTMAX = ("output_bias", "own_outputs")
_WORDS = "embedding.weight"


def start_from_language_model(config: TrainConfig, data: TextData) -> TextData:
    """The data with the vocabulary of the language model that --from names, and then the most frequent words that it
    lacks, and the weights to start with. Raises TrainingError and DataError."""
    address = config.start_from
    assert address is not None
    if config.old_data is not None:
        raise TrainingError(f"--old-data is learnt again where a classifier goes on, and {address} is a language model")
    found = load_language_model(address)
    require_rule_of_words(address, found.words, data)
    known = word_ids(found.vocabulary)
    new = [word for word in data.vocabulary[: config.vocabulary] if word not in known]
    vocabulary = [*found.vocabulary, *new]
    state = {name: each for name, each in found.model.state_dict().items() if name not in _OF_THE_SOFTMAX}
    state[_WORDS] = with_new_words(state[_WORDS], vocabulary, known)
    settings = found.model.settings
    apart = True if found.about.get("dataset") == data.digest else None
    weights = StartWeights(
        settings={
            "embedding": settings.embedding,
            "hidden": settings.hidden,
            "layers": settings.layers,
            "direction": settings.direction,
            "output_weights": "tied" if settings.tied else "own",
        },
        state={f"language.{name}": each for name, each in state.items()},
        near=len(vocabulary),
        about={
            "pretrained": {
                "address": address,
                **found.about,
                **{f"test_{name}": each for name, each in found.measures.items()},
                "test_rows_apart": apart,
            }
        },
        note=f"the layers start as those of the language model {address}, which knows {share_known(data, known):.1%} "
        f"of the words in the validation rows; {len(new):,} words that are new to it start from their parts. "
        + describe_test_rows(apart=apart),
    )
    own = renumbered(data, vocabulary, word_ids(vocabulary), data.classes, cache=config.cache)
    return replace(own, weights=weights)
