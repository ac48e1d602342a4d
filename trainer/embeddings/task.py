"""The task of learning vectors of words from text: rows of running words, by the model that `--model` names."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from corpus.stream.settings import read_settings
from corpus.text import FIRST_WORD
from trainer.balancing.split import Lengths
from trainer.clock import StepTimer
from trainer.computing.dropout import hashes
from trainer.computing.gradients import GradientComputer
from trainer.computing.threads import Threads
from trainer.config import TrainConfig
from trainer.distributed.ranks import Ranks
from trainer.embeddings.cooccurrence import Pairs
from trainer.embeddings.encoder import WordEncoder
from trainer.embeddings.judging import Judges, pip_reference
from trainer.embeddings.local_steps import LocalSteps
from trainer.embeddings.model_folder import write_vectors
from trainer.embeddings.options import require_text_of_kind
from trainer.embeddings.sampling import Sampling, Tokens, sampling
from trainer.embeddings.skipgram import Keys, SkipGram, SkipGramGradients, count_pairs
from trainer.embeddings.stream_rows import StreamRows, await_first_parts, load_start, read_start, write_start
from trainer.embeddings.text_rows import TextRows, read_rows
from trainer.embeddings.vectors import WordVectors
from trainer.optimisation_options import notes_of_mode
from trainer.order import IntArray
from trainer.output.files import MODEL, STREAM
from trainer.presets import ENDLESS
from trainer.registry import MODELS
from trainer.task import TEST, NextEpoch, Task

_EPOCHS = 5
_JUDGING_SHARE = 0.05
"""The share of the time that judging takes at most, where a part of a stream takes less time than judging."""
_SOME_ROWS = 256
_HELD_OUT_STEP = 1 << 40
"""A step that no run comes to: the chance by which the rows are judged that nobody learns from."""


TextData = TextRows | StreamRows


class Embedding(Task[TextData]):
    """Learns a vector of each word, such that words that occur together have similar ones."""

    precision = "float32"

    @staticmethod
    def load(config: TrainConfig, ranks: Ranks, *, memory: int, stop: Callable[[], bool]) -> TextData:  # noqa: ARG004
        with ranks.agreement():  # so that all ranks wait for the same first parts, or none
            settings = read_settings(config.data)
            require_text_of_kind(config, endless=settings.endless)
            kept = config.output / STREAM
            start = load_start(kept) if settings.endless and config.resume else None
        if not settings.endless:
            return read_rows(config.data, settings, min_count=config.min_count)
        began, first = time.monotonic(), []
        if not all(ranks.gather(start is not None)):
            with ranks.agreement(loading=True):
                if ranks.is_first:
                    words = min(config.vocabulary_words, config.words or config.vocabulary_words)
                    first = await_first_parts(config.data, settings, words=words, minutes=config.minutes, stop=stop)
            start = read_start(config.data, ranks.broadcast(first), min_count=config.min_count)
        assert start is not None
        if ranks.is_first:
            config.output.mkdir(parents=True, exist_ok=True)
            write_start(kept, start)
        return StreamRows(config.data, settings, start, began=began)

    @staticmethod
    def resolve_config(
        config: TrainConfig,
        ranks: Ranks,
        data: TextData,
    ) -> tuple[TrainConfig, TextData, list[str]]:
        if not config.requested_batch(1):
            config = replace(config, global_batch=_rows_of_a_step(config.model, ranks.device))
        usual = _EPOCHS if isinstance(data, TextRows) else ENDLESS
        if config.words and isinstance(data, TextRows):
            usual = -(-config.words // data.words)
        notes = [*data.notes, *notes_of_mode(config.mode, ranks=ranks.world_size)]
        return replace(config, epochs=config.epochs or usual), data, notes

    def __init__(self, config: TrainConfig, ranks: Ranks, data: TextData) -> None:
        self._config, self._ranks, self._data = config, ranks, data
        self._judged = time.monotonic(), 0.0  # when, and the seconds that it took
        vocabulary = data.vocabulary
        with ranks.agreement(loading=True):
            reference = _reference(config, data) if ranks.is_first else None
            self._judges = Judges(config.similarity, config.analogy, reference)
        self._rules = sampling(
            vocabulary.counts,
            rows=len(data.tokens),
            window=config.window,
            negatives=config.negatives,
            subsample=config.subsample,
            power=config.noise_power,
        )
        self._pairs_a_row = _pairs_a_row(data, self._rules)
        self._local: LocalSteps | None = None
        self.tables, self.sparse_tables = (), ()
        assert config.embedding is not None  # only a classifier may take it of vectors that it starts from
        self._make_model(config.embedding)

    def _make_model(self, size: int) -> None:
        """Set the model, whose words have vectors of `size`, and its tables."""
        config = self._config
        squares = bool(config.local_steps) and config.optimiser == "adagrad"
        model = SkipGram(len(self._rules.keep), size, squares=squares).to(self._ranks.device)
        self.model, self.sparse_tables = model, (model.centres, model.contexts, *model.squares)
        if config.local_steps:
            own = config.rank_batch or config.global_batch or _rows_of_a_step(config.model, self._ranks.device)
            self._local = LocalSteps(
                self._gradients(self._data.tokens), self._rules, rows=own, clip_norm=config.clip_norm
            )

    def gradient_computer(self, timer: StepTimer) -> GradientComputer:
        return GradientComputer(
            self.model,
            None,
            rows=len(self._data.tokens),
            sparse_tables=self.sparse_tables,
            device=self._ranks.device,
            timer=timer,
            threads=self._ranks.threads if self._local is None else Threads(1),
            direct=self._local or self._gradients(self._data.tokens),
        )

    def optimisation(self, config: TrainConfig) -> TrainConfig:
        return replace(config, optimiser="sgd", momentum=0.0, word_rate=1.0) if self._local else config

    def step_rate(self, config: TrainConfig, step: int, steps: int, size: int) -> float:
        if isinstance(self._data, StreamRows) and config.words and config.epochs:
            of_part = steps // config.epochs  # which tell less than words: where little text comes, parts are not full
            done = self._data.words_at(step % of_part / of_part)
            step, steps = min(done, config.words - 1), config.words
        if self._local is None:
            return super().step_rate(config, step, steps, size)
        self._local.rate = super().step_rate(config, step, steps, self._local.rows)
        return 1.0

    def _gradients(self, tokens: Tokens) -> SkipGramGradients:
        return SkipGramGradients(
            tokens,
            self._rules,
            seed=self._config.seed,
            pairs_a_row=self._pairs_a_row,
            steady=self._config.optimiser == "sgd",
        )

    def begin_epoch(self, stop: Callable[[], bool], *, wait: bool) -> NextEpoch:
        data = self._data
        if isinstance(data, TextRows):
            return NextEpoch.READY
        coming: NextEpoch = NextEpoch.READY
        with self._ranks.agreement(loading=True):
            if self._ranks.is_first and not data.has_part:
                coming = data.choose(stop, lambda: self._is_over(data), wait=wait)
        told = self._ranks.broadcast((coming.name, data.place(), self._is_judging_due()))
        coming, (place, self.judges_epoch) = NextEpoch[told[0]], told[1:]
        if coming is not NextEpoch.READY:
            return coming
        data.go_to(place)
        with self._ranks.agreement(loading=True):
            data.load()
        return NextEpoch.READY

    def end_epoch(self) -> bool:
        if isinstance(self._data, TextRows):
            return False
        self._data.end_part()
        return True

    def state(self) -> dict[str, Any]:
        return {} if isinstance(self._data, TextRows) else self._data.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        if isinstance(self._data, StreamRows):
            self._data.restore(state)

    def checkpoint_written(self) -> None:
        if isinstance(self._data, StreamRows):
            self._data.tell_readers()

    @property
    def saves_when_stopped(self) -> bool:  # type: ignore[override]
        return isinstance(self._data, StreamRows)

    def _is_over(self, data: StreamRows) -> bool:
        """Whether as many words or minutes were learnt from as were asked for."""
        minutes, words = self._config.minutes, self._config.words
        late = minutes is not None and time.monotonic() - data.began >= 60 * minutes
        return late or (words is not None and data.words_seen >= words)

    def _is_judging_due(self) -> bool:
        since, took = self._judged
        return (time.monotonic() - since) * _JUDGING_SHARE >= took

    def lengths(self, rows: IntArray) -> Lengths:
        return np.full(len(rows), self._data.tokens.shape[1], np.uint16)

    def touched_rows(self, rows: IntArray) -> tuple[IntArray, ...]:  # noqa: ARG002
        return ()

    def touched_sparse_rows(self, rows: IntArray, step: int) -> tuple[Tensor, ...]:
        return self._gradients(self._data.tokens).touched(rows, step) * (len(self.sparse_tables) // 2)

    def evaluate(self, part: str, *, split: IntArray, stop: Callable[[], bool]) -> dict[str, Any] | None:
        """The ranks share the rows that are held out; the first judges the vectors by words."""
        start = time.monotonic()
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
            # Those of a stream take their time at intervals (judges_epoch); of it there is seldom an end to judge at.
            takes_time = part == TEST or isinstance(self._data, StreamRows)
            words = (self._judges.all_measures if takes_time else self._judges.quick_measures)(self._vectors())
        self._judged = time.monotonic(), time.monotonic() - start
        return {"loss": sum(losses) / max(1, sum(counts)), **self._ranks.broadcast(words)}

    def summary_measures(self, tested: Mapping[str, Any] | None) -> dict[str, Any]:
        return dict(tested or {})

    def summary_settings(self) -> dict[str, Any]:
        return {
            "precision": self.precision,
            "vocabulary": len(self._data.vocabulary.words),
            "words_a_row": self._data.words / len(self._data.tokens),
            **({"words_seen": self._data.words_seen} if isinstance(self._data, StreamRows) else {}),
        }

    def closing_notes(self) -> list[str]:
        data, asked = self._data, self._config.words
        if isinstance(data, TextRows) or asked is None or data.words_seen >= asked:
            return []
        return [
            f"the run has ended after {data.words_seen:,} of the {asked:,} words that --words asks for, because "
            + ("its minutes (--minutes) have passed" if self._is_over(data) else "no more text comes")
        ]

    def save(self, output: Path, *, epoch: int, tested: Mapping[str, Any]) -> None:
        config = self._config
        names = ("window", "negatives", "subsample", "min_count", "noise_power", "seed")
        about = {"model": config.model, "epoch": epoch, "settings": {name: getattr(config, name) for name in names}}
        write_vectors(
            output / MODEL,
            self._vectors(),
            config={**about, "digest": self._data.digest},
            measures=dict(tested),
            encoder=self._encoder_to_save(),
        )

    def _loss_of_held_out(self, rows: Tokens, keys: Keys) -> tuple[Tensor, int]:
        """The sum of the losses of rows that are held out (n, tokens) with `keys` (n,), and the number of pairs."""
        assert isinstance(self.model, SkipGram)
        loss, pairs, _ = self._gradients(self._data.held_out).sums(self.model, rows, keys)
        return loss, pairs

    def _vectors(self) -> WordVectors:
        """The vectors of all words of the vocabulary."""
        assert isinstance(self.model, SkipGram)
        return WordVectors(self._data.vocabulary.words, self.model.vectors()[FIRST_WORD:].cpu().numpy())

    def _encoder_to_save(self) -> WordEncoder | None:
        """What gives other words vectors; None if nothing does."""
        return None


def _rows_of_a_step(model: str, device: torch.device) -> int:
    return MODELS[model].rows_of_a_step[device.type != "cpu"]


def _reference(config: TrainConfig, data: TextData) -> Pairs | None:
    """What the PIP loss compares with; None where it is not asked for."""
    if not config.pip:
        return None
    words = len(data.vocabulary.words)
    return pip_reference(data.tokens, words=words, window=config.window, negatives=config.negatives)


def _pairs_a_row(data: TextData, rules: Sampling) -> float:
    """The number of pairs in a row of text, about."""
    rows = data.tokens[:_SOME_ROWS] if isinstance(data, TextRows) else data.held_out
    keys = hashes(0, _HELD_OUT_STEP, np.arange(len(rows)))
    return max(1.0, count_pairs(rows, keys, rules) / len(rows))
