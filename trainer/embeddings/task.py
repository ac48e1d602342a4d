"""Task that learns word embeddings from rows of running text.

The data is a TextRows (text_rows.py, stream_rows.py). Each model is a subclass of `Embedding`.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from shoal_balance import IntArray, Lengths
from torch import Tensor

from corpus.stream.stream_settings import read_settings
from corpus.text import FIRST_WORD
from trainer.clock import StepTimer
from trainer.computing.dropout import hashes
from trainer.computing.gradients import GradientComputer
from trainer.computing.optimiser import Optimiser
from trainer.computing.threads import Threads
from trainer.config import TrainConfig
from trainer.distributed.ranks import Ranks
from trainer.embeddings.char_lstm import LONGEST, CharacterLoss, CharLSTM, EncoderSettings, Spelling
from trainer.embeddings.evaluation import WordEvaluation, pip_reference
from trainer.embeddings.local_steps import LocalSteps
from trainer.embeddings.model_folder import write_vectors
from trainer.embeddings.options import ENDLESS, CharLSTMOptions, EmbeddingOptions, require_text_of_kind
from trainer.embeddings.sampling import Tokens, sampling
from trainer.embeddings.skipgram import Keys, SkipGram, SkipGramGradients, count_pairs
from trainer.embeddings.stream_rows import StreamRows, TextStream, load_stream
from trainer.embeddings.text_rows import TextRows, read_rows
from trainer.embeddings.vectors import WordVectors
from trainer.options.optimisation_options import OptimisationOptions
from trainer.output.run_files import MODEL
from trainer.registry import Workload
from trainer.task import TEST, Task

_HELD_OUT_STEP = 1 << 40
"""Step number that determines the random choices in held-out rows. No run has so many steps."""


class Embedding(Task[TextRows]):
    """Task that learns embeddings, so that words that occur in similar contexts have similar embeddings."""

    precision = "float32"
    tables = ()
    stream: TextStream | None
    _encoder: CharLSTM | None = None
    """Model that also encodes words outside the vocabulary, if there is one."""

    @staticmethod
    def load(config: TrainConfig, ranks: Ranks, *, memory: int, stop: Callable[[], bool]) -> TextRows:  # noqa: ARG004
        with ranks.agreement():
            settings = read_settings(config.data)
            require_text_of_kind(config.options, endless=settings.follow)
        if settings.follow:
            return load_stream(config, settings, ranks, stop)
        return read_rows(config.data, settings, min_count=config.options.min_count)

    @staticmethod
    def resolve_config(config: TrainConfig, ranks: Ranks, data: TextRows) -> tuple[TrainConfig, TextRows, list[str]]:
        config = config.with_step_rows(Workload(on_gpus=ranks.device.type != "cpu"))
        default = ENDLESS if isinstance(data, StreamRows) else data.default_epochs(config.options.words)
        epochs = config.optimisation.epochs or default
        return config.changed(epochs=epochs), data, []

    def __init__(self, config: TrainConfig, ranks: Ranks, data: TextRows) -> None:
        """Prepare the data, the evaluation and the model."""
        options: EmbeddingOptions = config.options
        self._config, self._options, self._ranks, self._data = config, options, ranks, data
        self.stream = TextStream(data, options, ranks) if isinstance(data, StreamRows) else None
        with ranks.agreement(loading=True):
            reference = None
            if options.pip and ranks.is_first:
                words = len(data.vocabulary.words)
                reference = pip_reference(data.tokens, words=words, window=options.window, negatives=options.negatives)
            self._evaluation = WordEvaluation(options.similarity, options.analogy, reference)
        self._rules = sampling(
            data.vocabulary.counts,
            rows=data.counted_rows,
            window=options.window,
            negatives=options.negatives,
            subsample=options.subsample,
        )
        keys = hashes(0, _HELD_OUT_STEP, np.arange(len(data.sample)))
        self._pairs_a_row = max(1.0, count_pairs(data.sample, keys, self._rules) / len(data.sample))
        self._create_model()

    @abstractmethod
    def _create_model(self) -> None:
        """Set `model`, its tables, and the function that computes their gradients."""

    @abstractmethod
    def _loss_of_held_out(self, rows: Tokens, keys: Keys) -> tuple[Tensor, int]:
        """Return the sum of the losses of held-out `rows` (n, tokens), and their number of pairs.

        `keys` (n,): hashes that determine the random choices for each row.
        """

    @abstractmethod
    def _vectors(self) -> WordVectors:
        """Return the embeddings of all words of the vocabulary."""

    def step_rate(self, options: OptimisationOptions, step: int, steps: int, size: int) -> float:
        if self.stream is not None:
            step, steps = self.stream.schedule_position(options.epochs, step, steps)
        return super().step_rate(options, step, steps, size)

    def lengths(self, rows: IntArray) -> Lengths:
        return np.full(len(rows), self._data.tokens.shape[1], np.uint16)

    def evaluate(self, part: str, *, split: IntArray, stop: Callable[[], bool]) -> dict[str, Any] | None:
        """Evaluate the model. Each rank computes some of the held-out rows; the first rank evaluates the embeddings."""
        begin = int(split[: self._ranks.rank].sum())
        numbers = np.arange(begin, begin + int(split[self._ranks.rank]))
        loss, pairs = self._loss_of_held_out(
            self._data.held_out[numbers], hashes(self._config.seed, _HELD_OUT_STEP, numbers)
        )
        of_ranks = self._ranks.gather((loss.item(), pairs, stop()))
        if any(stopped for _, _, stopped in of_ranks):
            return None
        losses, counts, _ = zip(*of_ranks, strict=True)
        words: dict[str, Any] = {}
        if self._ranks.is_first:
            # A stream rarely ends, so all metrics are computed at each evaluation, not only at the end.
            analogy = part == TEST or self.stream is not None
            words = self._evaluation.measures(self._vectors(), analogy=analogy)
        return {"loss": sum(losses) / max(1, sum(counts)), **self._ranks.broadcast(words)}

    def summary_measures(self, tested: Mapping[str, Any] | None) -> dict[str, Any]:
        return dict(tested or {})

    def summary_settings(self) -> dict[str, Any]:
        return {
            "precision": self.precision,
            "vocabulary": len(self._data.vocabulary.words),
            "words_a_row": self._data.words / len(self._data.tokens),
            **({} if self.stream is None else self.stream.summary()),
        }

    def closing_notes(self) -> list[str]:
        return [] if self.stream is None else self.stream.closing_notes()

    def save(self, output: Path, *, epoch: int, tested: Mapping[str, Any]) -> None:
        values = self._config.values()
        names = ("window", "negatives", "subsample", "min_count", "seed")
        about = {"model": values["model"], "epoch": epoch, "settings": {name: values[name] for name in names}}
        write_vectors(
            output / MODEL,
            self._vectors(),
            config={**about, "digest": self._data.digest},
            measures=dict(tested),
            encoder=self._encoder,
        )


class SkipGramEmbedding(Embedding):
    """Task that learns two vectors of each word: as a centre, which is the word's embedding, and as a context."""

    model: SkipGram

    def _create_model(self) -> None:
        options = self._config.optimisation
        squares = bool(options.local_steps) and options.optimiser == "adagrad"
        self.model = SkipGram(len(self._rules.keep), self._options.embedding, squares=squares).to(self._ranks.device)
        self.sparse_tables = (self.model.centres, self.model.contexts, *self.model.squares)
        self._learning = self._gradients(self._data.tokens)
        self._local: LocalSteps | None = None
        if options.local_steps:
            rows = options.rank_batch or options.global_batch
            assert rows is not None  # `resolve_config` has set the number
            self._local = LocalSteps(self._learning, rows=rows, clip_norm=options.clip_norm)

    def gradient_computer(self, timer: StepTimer) -> GradientComputer:
        return GradientComputer(
            self.model,
            None,
            rows=len(self._data.tokens),
            sparse_tables=self.sparse_tables,
            device=self._ranks.device,
            timer=timer,
            threads=self._ranks.threads if self._local is None else Threads(1),
            direct=self._local or self._learning,
        )

    def optimiser(self, options: OptimisationOptions) -> Optimiser:
        joint = replace(options, optimiser="sgd", momentum=0.0, word_rate=1.0) if self._local else options
        return super().optimiser(joint)

    def step_rate(self, options: OptimisationOptions, step: int, steps: int, size: int) -> float:
        if self._local is None:
            return super().step_rate(options, step, steps, size)
        self._local.rate = super().step_rate(options, step, steps, self._local.rows)
        return 1.0

    def touched_sparse_rows(self, rows: IntArray, step: int) -> tuple[Tensor, ...]:
        return self._learning.touched(rows, step) * (len(self.sparse_tables) // 2)

    def _gradients(self, tokens: Tokens) -> SkipGramGradients:
        return SkipGramGradients(
            tokens,
            self._rules,
            seed=self._config.seed,
            pairs_a_row=self._pairs_a_row,
            steady=self._config.optimisation.optimiser == "sgd",
        )

    def _loss_of_held_out(self, rows: Tokens, keys: Keys) -> tuple[Tensor, int]:
        loss, pairs, _ = self._gradients(self._data.held_out).sums(self.model.tables, rows, keys)
        return loss, pairs

    def _vectors(self) -> WordVectors:
        words = self._data.vocabulary.words
        return WordVectors(words, self.model.tables.centres[FIRST_WORD:].cpu().numpy())


class CharacterEmbedding(Embedding):
    """Task that learns to compute a word's embedding from its characters."""

    _encoder: CharLSTM

    def _create_model(self) -> None:
        options: CharLSTMOptions = self._config.options
        words = self._data.vocabulary.words
        spelling = Spelling.of(words)
        self._letters = np.zeros((len(self._rules.keep), LONGEST), np.int16)
        self._letters[FIRST_WORD:] = spelling.letters(words)
        settings = EncoderSettings(
            characters=spelling.characters,
            character_embedding=options.character_embedding,
            hidden=options.hidden,
            layers=options.layers,
            size=options.embedding,
        )
        self.model = self._encoder = CharLSTM(settings).to(self._ranks.device)
        self._learning = self._loss(self._data.tokens)

    def gradient_computer(self, timer: StepTimer) -> GradientComputer:
        return GradientComputer(
            self.model,
            self._learning,
            rows=len(self._data.tokens),
            device=self._ranks.device,
            timer=timer,
            threads=self._ranks.threads,
        )

    @torch.no_grad()
    def _loss_of_held_out(self, rows: Tokens, keys: Keys) -> tuple[Tensor, int]:
        return self._loss(self._data.held_out).sums(self._encoder, rows, keys)

    def _vectors(self) -> WordVectors:
        words = self._data.vocabulary.words
        return WordVectors(words, self._encoder.vectors(words))

    def _loss(self, tokens: Tokens) -> CharacterLoss:
        return CharacterLoss(tokens, self._rules, self._letters, seed=self._config.seed, pairs_a_row=self._pairs_a_row)
