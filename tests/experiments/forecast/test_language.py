"""What pretraining a language model takes, by the GPU that was measured and by hand."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootstrap.aws.cdk import TOPOLOGIES
from experiments.forecast.cluster import ClusterWork, predict_cluster
from experiments.forecast.language import MEASURED, LanguageModel, peak, share_of_peak
from infra import catalog, topology
from trainer.config import configured
from trainer.language.model import EncoderSettings

H200 = catalog.find("p5en.48xlarge").gpu
A10G = catalog.find("g5.xlarge").gpu
M60 = catalog.find("g3.4xlarge").gpu
SMALL = MEASURED["small"].model

models = st.builds(
    LanguageModel,
    ids=st.integers(258, 50_000),
    embedding=st.integers(16, 1024),
    hidden=st.integers(16, 4096),
    layers=st.integers(1, 4),
    bptt=st.integers(10, 300),
    directions=st.integers(1, 2),
    tied=st.booleans(),
    samples=st.sampled_from([0, 1000]),
)


@pytest.mark.parametrize("name", MEASURED)
def test_the_gpu_that_was_measured_learns_as_fast_as_it_did(name: str) -> None:
    model, rows, speed = MEASURED[name]
    assert model.tokens_per_second(H200, rows) == pytest.approx(speed)


def test_the_operations_of_a_token_by_hand() -> None:
    lstm = 4 * 512 * (256 + 512) + 4 * 256 * (512 + 256)
    assert SMALL.operations == 6 * (lstm + 30_002 * 256)
    sampled = replace(SMALL, samples=2048)
    assert sampled.operations == 6 * (lstm + 2049 * 256)
    assert SMALL.gradient_bytes(128) == 4 * (lstm + 30_002 * 256)
    assert replace(SMALL, gradient_bits=16).gradient_bytes(128) == 2 * (lstm + 30_002 * 256)
    assert 4 * lstm < sampled.gradient_bytes(128) < SMALL.gradient_bytes(128)


@pytest.mark.parametrize(("preset", "unit"), [("medium", "tokens"), ("large", "bytes")])
def test_its_weights_are_those_that_the_trainer_has(preset: str, unit: str) -> None:
    config = configured({"preset": preset, "direction": "both", "data": "none", "output": "none"})
    model = LanguageModel.of(config, unit)
    made = EncoderSettings(
        words=model.ids,
        embedding=config.embedding,
        hidden=config.hidden,
        layers=config.layers,
        direction="both",
        tied=model.tied,
    )
    assert model.tied == (unit == "tokens")
    assert model.gradient_bytes(64) == pytest.approx(4 * made.weights, rel=0.01)  # biases do not count


def test_another_gpu_reaches_the_same_share_of_its_own_peak() -> None:
    assert (peak(H200), peak(A10G), peak(M60)) == (989, 70, 4.8)
    model, rows, speed = MEASURED["4,096 bytes"]
    assert model.tokens_per_second(A10G, rows) == pytest.approx(speed * 70 / 989)
    known, guessed = model.rates([H200, A10G], 512)
    assert (known.source, "not measured" in guessed.source) == (
        "H200: 46% of its 989 TFLOPS, as measured on an H200",
        True,
    )
    assert guessed.off > known.off


@given(models, st.integers(2, 4096))
def test_more_rows_take_longer_but_not_twice_as_long(model: LanguageModel, rows: int) -> None:
    once, twice = model.seconds(A10G, rows), model.seconds(A10G, 2 * rows)
    assert once < twice <= 2 * once * (1 + 1e-9)
    (rate,) = model.rates([A10G], 2 * rows)
    assert rate.line.seconds(2 * rows) == pytest.approx(twice)
    assert rate.line.per_row > 0
    assert rate.line.fixed >= -1e-9 * twice


@given(st.floats(1, 1e12), st.floats(1, 1e12))
def test_larger_products_reach_no_smaller_share(one: float, other: float) -> None:
    small, large = (share_of_peak(size) for size in sorted((one, other)))
    assert 0 < small <= large * (1 + 1e-9) < 0.5


@given(models, st.integers(1, 10**9), st.integers(1, 3))
def test_every_token_is_in_one_window_of_an_epoch(model: LanguageModel, tokens: int, epochs: int) -> None:
    work = model.work(tokens, epochs, 64, 2.0)
    assert work.rows == max(1, round(tokens / model.bptt))
    assert work.row_bytes == 2.0 * model.bptt
    assert work.validation <= max(1, math.ceil((1 << 17) / model.text_words))


def test_more_text_epochs_and_layers_never_take_less_on_mixed_gpus() -> None:
    chosen = topology.load("mixed-g5-g4dn", TOPOLOGIES)
    work = ClusterWork(rows=10**8, raw_bytes=None, epochs=1, global_batch=512, model=SMALL)
    before = predict_cluster(chosen, work)
    deeper = replace(SMALL, layers=3)
    for changes in ({"rows": 2 * 10**8}, {"epochs": 2}, {"model": deeper}):
        more = predict_cluster(chosen, replace(work, **changes))
        assert more.seconds.middle > before.seconds.middle
        assert more.dollars.middle > before.dollars.middle
