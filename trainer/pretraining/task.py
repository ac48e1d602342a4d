"""The task of learning a language model: rows are windows of streams of text, and the LSTM's states are carried on."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from common.errors import TrainingError
from corpus.text import FIRST_WORD
from trainer.balancing.split import Lengths
from trainer.clock import ROWS, StepTimer
from trainer.computing import dropout, precision
from trainer.computing.gradients import GradientComputer
from trainer.config import TrainConfig
from trainer.devices import moved_to
from trainer.distributed.ranks import Ranks
from trainer.language.model import EncoderSettings, LanguageModel, Regularisation
from trainer.language.model_folder import PretrainedModel, write_language_model
from trainer.language.softmax import draw, exact_loss, sampled_ids, sampled_loss
from trainer.order import BatchOrder, IntArray
from trainer.output.archive import DamagedError
from trainer.output.run_files import MODEL
from trainer.pretraining import data as texts
from trainer.pretraining.data import LanguageData, text_bytes
from trainer.pretraining.evaluation import Prediction, predict_texts
from trainer.pretraining.states import CarriedStates, piece_of
from trainer.registry import MODELS
from trainer.task import TRAINING, VALIDATION, Task

_EPOCHS = 6
"""Where the user names no number."""
_ROUND = 4096
"""Texts of a rank that are evaluated between two agreements to go on."""
_MEASURES = ("loss", "perplexity", "bits_per_byte", "unknown")


class Language(Task[LanguageData]):
    """Learns to predict each next word or byte of texts."""

    @staticmethod
    def load(config: TrainConfig, ranks: Ranks, *, memory: int, stop: Callable[[], bool]) -> LanguageData:  # noqa: ARG004
        return texts.load(config, streams=_streams(config, ranks), memory=memory)

    @staticmethod
    def resolve_config(
        config: TrainConfig,
        ranks: Ranks,  # noqa: ARG004
        data: LanguageData,
    ) -> tuple[TrainConfig, LanguageData, list[str]]:
        epochs = config.epochs or _EPOCHS
        return replace(config, global_batch=data.streams.streams, rank_batch=None, epochs=epochs), data, []

    @staticmethod
    def batch_order(data: LanguageData, global_batch: int, seed: int) -> BatchOrder:
        streams = data.streams
        if global_batch != streams.streams:
            raise TrainingError(
                f"the run has steps of {global_batch} rows; resume it with --global-batch {global_batch}"
            )
        return BatchOrder(rows=data.sizes[TRAINING], global_batch=global_batch, seed=seed, shuffled=False)

    def __init__(self, config: TrainConfig, ranks: Ranks, data: LanguageData) -> None:
        assert config.embedding is not None
        self._config, self._ranks, self._data, self._step = config, ranks, data, 0
        settings = EncoderSettings(
            words=len(data.vocabulary) + FIRST_WORD,
            embedding=config.embedding,
            hidden=config.hidden,
            layers=config.layers,
            direction=config.direction,
            tied=(config.output_weights or ("own" if data.word_rule == "bytes" else "tied")) == "tied",
        )
        shares = Regularisation(
            inputs=config.embedding_dropout,
            between=config.dropout,
            words=config.word_dropout,
            weights=config.weight_drop,
        )
        self.model: LanguageModel = LanguageModel(settings, shares).to(ranks.device)
        with ranks.agreement():
            self.precision = precision.choose(config.precision, ranks.gather(precision.capability(ranks.device)))
        self.model.precision = precision.NAMES[self.precision]
        self._samples = config.samples if config.samples < settings.words else 0
        self.tables = self.model.outputs if self._samples else ()
        self._states = CarriedStates(data.streams.streams, settings.state_width, ranks.device)

    def gradient_computer(self, timer: StepTimer) -> GradientComputer:
        return GradientComputer(
            self.model,
            self._loss_of,
            rows=self._data.sizes[TRAINING],
            precision=self.model.precision,
            device=self._ranks.device,
            timer=timer,
            threads=self._ranks.threads,
        )

    def _loss_of(self, model: nn.Module, numbers: IntArray, step: int, timer: StepTimer) -> Tensor:
        """See `LossOf`: of each row the mean of its tokens' losses."""
        assert isinstance(model, LanguageModel)
        config, streams = self._config, self._data.streams
        epoch, of_streams = step // streams.steps, numbers % streams.streams
        read = self._read(numbers, epoch)  # each (times + 1, n)
        states = None if numbers[0] < streams.streams else self._states.before(of_streams)
        keys = moved_to(dropout.keys(config.seed, step, of_streams), self._ranks.device)
        timer.end_phase(ROWS)
        inputs = [each[:-1] for each in read]
        outputs, after = model(inputs, states, keys, dropout.step_shift(config.seed, step))
        self._states.keep(step, of_streams, after)
        weights, bias = model.outputs
        losses = []
        for found, each in zip(outputs, read, strict=True):
            flat, targets = found.flatten(0, 1), each[1:].flatten()
            if self._samples:
                sample = draw(len(weights), self._samples, config.seed, step, flat.device)
                losses.append(sampled_loss(flat, targets, weights, bias, sample))
            else:
                losses.append(exact_loss(flat, targets, weights, bias))
        return torch.stack(losses).sum() / (len(losses) * len(inputs[0]))

    def _read(self, numbers: IntArray, epoch: int) -> list[Tensor]:
        """For each direction the tokens (times + 1, n) of the rows `numbers` (n,), on this rank's device."""
        directions = self.model.settings.directions
        found = [self._data.streams.read(numbers, epoch, backward=each == "backward").T for each in directions]
        return [moved_to(np.ascontiguousarray(each), self._ranks.device) for each in found]

    def begin_step(self, step: int, split: IntArray) -> None:
        self._step = step
        if step % self._data.streams.steps == 0:
            self._states.clear()
        self._states.begin_step(step, split)

    def before_checkpoint(self) -> None:
        self._states.gather()

    def state(self) -> dict[str, Any]:
        return {"states": self._states.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        try:
            self._states.restore(state["states"])
        except (KeyError, AttributeError, ValueError) as error:
            raise DamagedError(f"it has no states of these streams: {error}") from error

    def share(self, rows: IntArray, split: IntArray, rank: int) -> IntArray:  # noqa: ARG002
        return piece_of(split, rank)

    def lengths(self, rows: IntArray) -> Lengths:
        return np.ones(len(rows), np.uint16)

    def touched_rows(self, rows: IntArray) -> tuple[IntArray, ...]:
        if not self._samples:
            return ()
        streams, words = self._data.streams, self.model.settings.words
        epoch = self._step // streams.steps
        seen = np.zeros(words, np.bool_)
        for direction in self.model.settings.directions:
            seen[streams.read(rows, epoch, backward=direction == "backward")] = True
        seen[sampled_ids(words, self._samples, self._config.seed, self._step)] = True
        touched = np.flatnonzero(seen)
        return touched, touched

    def evaluate(self, part: str, *, split: IntArray, stop: Callable[[], bool]) -> dict[str, Any] | None:
        rows = self._data.validation if part == VALIDATION else self._data.test
        own = piece_of(split, self._ranks.rank)
        rounds = -(-int(split.max()) // _ROUND)
        sums = np.zeros(len(Prediction._fields) + 1)
        self.model.eval()
        sizes = self._data.token_bytes
        for number in range(rounds):
            if any(self._ranks.gather(stop())):
                self.model.train()
                return None
            some = own[number * _ROUND : (number + 1) * _ROUND]
            for found in self._ranks.threads.map(partial(predict_texts, self.model, rows), self._for_threads(some)):
                sums[:-1] += found
            sums[-1] += text_bytes(rows, some, sizes)
        self.model.train()
        loss, tokens, unknown, size = np.sum(self._ranks.gather(sums.tolist()), axis=0).tolist()
        return {
            "loss": loss / tokens,
            "perplexity": math.exp(min(loss / tokens, 700.0)),
            "bits_per_byte": loss / math.log(2) / size,
            "unknown": unknown / tokens,
        }

    def _for_threads(self, numbers: IntArray) -> list[IntArray]:
        count = self._ranks.threads.count
        return [numbers[thread::count] for thread in range(min(count, len(numbers)))]

    def summary_measures(self, tested: Mapping[str, Any] | None) -> dict[str, Any]:
        return {name: tested[name] if tested else None for name in _MEASURES}

    def summary_settings(self) -> dict[str, Any]:
        streams = self._data.streams
        return {
            "precision": self.precision,
            "vocabulary": len(self._data.vocabulary),
            "tokens": streams.tokens,
            "tokens_a_row": streams.tokens / self._data.sizes[TRAINING],
            "weights": self.model.settings.weights,
        }

    def save(self, output: Path, *, epoch: int, tested: Mapping[str, Any]) -> None:
        about = {"dataset": self._data.digest, "epoch": epoch, "tokens": self._data.streams.tokens * epoch}
        trained = PretrainedModel(
            model=self.model,
            vocabulary=self._data.vocabulary,
            words=self._data.word_rule,
            about=about,
            measures=tested,
        )
        write_language_model(output / MODEL, trained)


def _streams(config: TrainConfig, ranks: Ranks) -> int:
    """Rows of a step, where the user names none as many as suit the device."""
    return config.requested_batch(ranks.world_size) or MODELS[config.model].rows_of_a_step[ranks.device.type != "cpu"]
