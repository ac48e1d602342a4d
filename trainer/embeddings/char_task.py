"""The task of learning an encoder from text, which computes the embeddings of words from their characters."""

import numpy as np
import torch
from torch import Tensor

from corpus.text import FIRST_WORD
from trainer.clock import StepTimer
from trainer.computing.gradients import GradientComputer
from trainer.config import TrainConfig
from trainer.distributed.ranks import Ranks
from trainer.embeddings.char_lstm import CharacterLoss
from trainer.embeddings.encoder import EncoderSettings, WordEncoder
from trainer.embeddings.sampling import Tokens
from trainer.embeddings.skipgram import Keys
from trainer.embeddings.spelling import LONGEST, Spelling
from trainer.embeddings.task import Embedding
from trainer.embeddings.text_rows import TextData
from trainer.embeddings.vectors import WordVectors


class CharacterEmbedding(Embedding):
    """Learns to compute a word's embedding from its characters."""

    _encoder: WordEncoder

    def __init__(self, config: TrainConfig, ranks: Ranks, data: TextData) -> None:
        super().__init__(config, ranks, data)
        spelling = Spelling.of(data.vocabulary.words)
        self._letters = np.zeros((len(self._rules.keep), LONGEST), np.int16)
        self._letters[FIRST_WORD:] = spelling.letters(data.vocabulary.words)
        settings = EncoderSettings(
            characters=spelling.characters,
            character_embedding=config.character_embedding,
            hidden=config.hidden,
            layers=config.layers,
            size=self._size,
        )
        self._encoder = WordEncoder(settings, settings.build().to(ranks.device))
        self.model = self._encoder.model
        self._learning = self._loss(data.tokens)

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
        return self._loss(self._data.held_out).sums(self._encoder.model, rows, keys)

    def _vectors(self) -> WordVectors:
        words = self._data.vocabulary.words
        return WordVectors(words, self._encoder.vectors(words))

    def _loss(self, tokens: Tokens) -> CharacterLoss:
        return CharacterLoss(tokens, self._rules, self._letters, seed=self._config.seed, pairs_a_row=self._pairs_a_row)
