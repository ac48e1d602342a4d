"""The task of learning a table of word embeddings by skip-gram. Ranks take each step together, or steps of their own
(local_steps.py)."""

from dataclasses import replace

from shoal_balance import IntArray
from torch import Tensor

from corpus.text import FIRST_WORD
from trainer.clock import StepTimer
from trainer.computing.gradients import GradientComputer
from trainer.computing.threads import Threads
from trainer.config import TrainConfig
from trainer.distributed.ranks import Ranks
from trainer.embeddings.local_steps import LocalSteps
from trainer.embeddings.sampling import Tokens
from trainer.embeddings.skipgram import Keys, SkipGram, SkipGramGradients
from trainer.embeddings.task import Embedding
from trainer.embeddings.text_rows import TextData
from trainer.embeddings.vectors import WordVectors


class SkipGramEmbedding(Embedding):
    """Learns two vectors of each word, as a centre and as a context; the first is its embedding."""

    model: SkipGram

    def __init__(self, config: TrainConfig, ranks: Ranks, data: TextData) -> None:
        super().__init__(config, ranks, data)
        squares = bool(config.local_steps) and config.optimiser == "adagrad"
        self.model = SkipGram(len(self._rules.keep), self._size, squares=squares).to(ranks.device)
        self.sparse_tables = (self.model.centres, self.model.contexts, *self.model.squares)
        self._learning = self._gradients(data.tokens)
        self._local: LocalSteps | None = None
        if config.local_steps:
            rows = config.rank_batch or config.global_batch
            assert rows is not None  # `resolve_config` has set it
            self._local = LocalSteps(self._learning, rows=rows, clip_norm=config.clip_norm)

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

    def optimisation(self, config: TrainConfig) -> TrainConfig:
        return replace(config, optimiser="sgd", momentum=0.0, word_rate=1.0) if self._local else config

    def step_rate(self, config: TrainConfig, step: int, steps: int, size: int) -> float:
        if self._local is None:
            return super().step_rate(config, step, steps, size)
        self._local.rate = super().step_rate(config, step, steps, self._local.rows)
        return 1.0

    def touched_sparse_rows(self, rows: IntArray, step: int) -> tuple[Tensor, ...]:
        return self._learning.touched(rows, step) * (len(self.sparse_tables) // 2)

    def _gradients(self, tokens: Tokens) -> SkipGramGradients:
        return SkipGramGradients(
            tokens,
            self._rules,
            seed=self._config.seed,
            pairs_a_row=self._pairs_a_row,
            steady=self._config.optimiser == "sgd",
        )

    def _loss_of_held_out(self, rows: Tokens, keys: Keys) -> tuple[Tensor, int]:
        loss, pairs, _ = self._gradients(self._data.held_out).sums(self.model, rows, keys)
        return loss, pairs

    def _vectors(self) -> WordVectors:
        words = self._data.vocabulary.words
        return WordVectors(words, self.model.vectors()[FIRST_WORD:].cpu().numpy())
