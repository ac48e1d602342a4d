"""`shoal plan --rows`: what a topology takes and costs for a user's data, and which one to take."""

import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bootstrap.cli import machine_speed, plan_work
from bootstrap.cli.main import main
from bootstrap.demo.reviews import write_reviews
from embedded.aws import EmbeddedAws
from experiments.forecast.gpu_rates import REFERENCE_MODEL
from tests.experiments.forecast.test_training import a_run

ROWS = ("--rows", "21300000", "--epochs", "10")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(["plan", *arguments]) == status
    return capsys.readouterr().out


def test_it_predicts_each_stage_with_its_range_and_what_it_follows_from(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("mixed-g5-g4dn", "--offline", *ROWS, "--raw-bytes", "92.45GB")
    text = printed(capsys, *asked)
    for part in ("start the cluster", "preprocess", "the idle cluster", "copy the data", "train", "not measured"):
        assert part in text
    (plan,) = json.loads(printed(capsys, *asked, "--json"))["plans"]
    prediction = plan["prediction"]
    assert prediction["dollars"]["middle"] == pytest.approx(
        sum(stage["dollars"]["middle"] for stage in prediction["stages"]) + prediction["by_use"]
    )
    assert plan["price"] > prediction["dollars"]["middle"]


def test_credentials_that_end_before_the_work_does_are_told(
    capsys: pytest.CaptureFixture[str], aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", (datetime.now(UTC) + timedelta(minutes=40)).isoformat())
    text = printed(capsys, "mixed-g5-g4dn", *ROWS, "--raw-bytes", "92.45GB")
    assert "Note: your AWS credentials end at " in text
    assert text.rstrip().endswith(
        "nodes and steps go on without them, but no command follows them; renew them before they end."
    )
    assert "credentials" not in printed(capsys, "mixed-g5-g4dn", "--offline", *ROWS, "--raw-bytes", "92.45GB")


def test_of_all_topologies_those_that_fit_are_listed_the_cheapest_first(capsys: pytest.CaptureFixture[str]) -> None:
    limits = ("--max-price", "30", "--max-hours", "2")
    listed = json.loads(printed(capsys, "--all", *ROWS, *limits, "--json"))["topologies"]
    prices = [each["dollars"]["middle"] for each in listed]
    assert prices == sorted(prices)
    assert max(prices) <= 30
    assert max(each["seconds"]["middle"] for each in listed) <= 2 * 3600
    best = [each for each in listed if each["best"]]
    assert best[0] is listed[0]
    assert [each["seconds"]["middle"] for each in best] == sorted(each["seconds"]["middle"] for each in best)[::-1]
    assert not any(each["topology"].startswith("reference") for each in listed)
    assert "*" in printed(capsys, "--all", *ROWS)


def test_where_nothing_fits_it_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--all", *ROWS, "--max-hours", "0.001", status=1)
    assert "The cheapest is" in text
    text = printed(capsys, "--all", *ROWS, "--max-price", "0.01")
    assert "No topology fits. The cheapest is" in text
    assert "this machine" in text


def test_the_choice_begins_with_one_machine(capsys: pytest.CaptureFixture[str]) -> None:
    reference = ("--rows", "21300000", "--raw-bytes", "92.45GB", "--epochs", "10")
    text = " ".join(printed(capsys, "--all", *reference).split())
    assert text.startswith("One machine for all of it: machine model dollars hours of that, in minutes")
    assert text.index("this machine fasttext 0 ") < text.index("topology dollars hours best what it is")
    assert "No cluster below is faster or cheaper than all of these beyond the error of the predictions" in text
    found = json.loads(printed(capsys, "--all", *reference, "--json"))
    here, *rented = found["machines"]
    assert (here["machine"], here["model"], here["dollars"]["middle"]) == ("this machine", "fasttext", 0.0)
    assert {each["model"] for each in rented} == {"fasttext", "lstm"}
    for cluster in found["topologies"]:
        assert any(
            each["seconds"]["low"] <= cluster["seconds"]["high"]
            and each["dollars"]["low"] <= cluster["dollars"]["high"]
            for each in rented
            if each["model"] == "lstm"
        )


@pytest.mark.soak
def test_this_machine_is_measured_where_that_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "with --measure half a minute tells" in printed(capsys, "--all", *ROWS)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(machine_speed, "_TEXTS", 1000)
    monkeypatch.setattr(machine_speed, "_COPIES", 2)
    seconds = {"few.json": 1.0, "many.json": 6.3}
    made = machine_speed._preprocessed
    monkeypatch.setattr(machine_speed, "_preprocessed", lambda file: (seconds[file.name], made(file)[1]))
    monkeypatch.setattr(machine_speed, "cores", lambda: 64)
    found = json.loads(printed(capsys, "--all", *ROWS, "--measure", "--json"))
    # As fast as three cores on the one core that such little input has; 64 cores do 64 times as much.
    assert found["this_machine"]["together"] == pytest.approx(64 * machine_speed._CORE_SECONDS / 5.3)
    assert found["this_machine"]["alone"] > 0
    assert list(tmp_path.iterdir()) == []
    seconds["many.json"] = 0.9
    assert main(["plan", "--all", *ROWS, "--measure"]) == 1
    assert "measure again" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_rates_of_nodes_are_none_of_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = a_run(tmp_path / "run", batch=64, rows=5_000)
    listed = json.loads(printed(capsys, "--all", *ROWS, "--rates", str(run.folder), "--json"))["machines"]
    assert [(each["machine"], each["model"]) for each in listed[:2]] == [
        ("this machine", "fasttext"),
        ("this machine", "lstm"),
    ]
    nodes = [{"instance_type": "g5.xlarge", "gpus": 1}]
    stages = [{"name": "train", "seconds": 1.0}]
    (run.folder / "launch.json").write_text(json.dumps({"seconds": 9.0, "nodes": nodes, "stages": stages}))
    assert main(["plan", "--all", *ROWS, "--rates", str(run.folder)]) == 2
    assert "shoal calibrate --local" in capsys.readouterr().err


def test_it_predicts_a_training_on_this_machine_by_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path / "rates" / "one", batch=64, rows=5_000)
    a_run(tmp_path / "rates" / "two", batch=512, rows=20_000)
    rates = ("--rates", str(tmp_path / "rates"))
    text = printed(capsys, "--local", "--rows", "50000", "--epochs", "3", *rates)
    assert "measured" in text
    small, large = (
        json.loads(printed(capsys, "--local", "--rows", rows, *rates, "--json"))["all"]["middle"]
        for rows in ("50000", "100000")
    )
    assert small < large < 2 * small
    for wrong in (("--local", "--rows", "5"), ("--rows", "5", *rates), ("starter", "--local", "--rows", "5", *rates)):
        assert main(["plan", *wrong]) == 2


def test_a_topology_without_a_cluster_cannot_preprocess(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "embeddings-1gpu", "--offline", "--rows", "5", "--raw-bytes", "1GB"]) == 1
    assert "has no cluster" in capsys.readouterr().err


def test_what_has_no_price_in_a_region_is_named_and_the_rest_is_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text(
        "description: x\nregion: eu-west-1\npreprocessing: {primary: {instance_type: m5.xlarge}}\n"
        "training: [{instance_type: g5.xlarge, count: 1}]\nnetwork: {egress: nat}\n"
    )
    arguments = (str(tmp_path / "mine.yaml"), "--offline", *ROWS, "--raw-bytes", "1GB")
    said = printed(capsys, *arguments)
    for sentence in (
        "unknown    unknown\n",
        "everything at work, at least",
        "12 h with everything at work: at least $13.48.",
        "what is left still costs by the hour",
        "What these hours cost is not known, because prices are missing",
        "NAT gateway, what passes: unknown a GiB",
        "warning: prices: those of primary m5.xlarge, EMR on m5.xlarge",
        "The dollars are without primary m5.xlarge, EMR on m5.xlarge",
    ):
        assert sentence in said
    told = json.loads(printed(capsys, *arguments, "--json"))["plans"][0]
    assert told["unknown"][0] == told["prediction"]["unknown"][0] == "primary m5.xlarge"
    assert told["hourly"] == 1.123


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 texts, each several times."""
    path = tmp_path_factory.mktemp("reviews") / "reviews.json"
    write_reviews(path, texts=600)
    path.write_bytes(2 * path.read_bytes())
    return path


def test_it_counts_the_rows_of_few_reviews_and_predicts_by_them(
    reviews: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = json.loads(printed(capsys, "starter", "--offline", "--like", str(reviews), "--json"))
    assert said["like"]["rows"] == {"low": 600, "middle": 600, "high": 600}
    assert said["like"]["texts"]["middle"] > 1200
    given = ("--rows", "600", "--raw-bytes", str(said["like"]["raw_bytes"]["middle"]))
    (by_like,), (by_rows,) = (
        said["plans"],
        json.loads(printed(capsys, "starter", "--offline", *given, "--json"))["plans"],
    )
    like, rows = (
        {stage["name"]: stage["seconds"]["middle"] for stage in plan["prediction"]["stages"]}
        for plan in (by_like, by_rows)
    )
    assert (like["train"] < rows["train"]) == (said["like"]["words"] < 100)  # as many as a row is taken to have
    assert like["copy the data"] / rows["copy the data"] == pytest.approx(said["like"]["words"] / 200)
    assert like["preprocess"] < rows["preprocess"]  # of shorter texts a smaller dataset is merged
    text = printed(capsys, "starter", "fasttext", "--offline", "--like", str(reviews))
    for part in ("All of it was read", "words a text", "ratings", "fasttext has no cluster", "shoal calibrate"):
        assert part in text


def test_the_range_of_rows_widens_the_prediction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_work, "_lstm_on", lambda _: REFERENCE_MODEL)  # rows of the same work on both sides
    path = tmp_path / "reviews.json"
    write_reviews(path, texts=600)
    with path.open("ab") as more:  # so that a sample is a part of it
        line = path.read_bytes().splitlines(keepends=True)[0]
        more.write(line * (5_000_000 // len(line)))
    said = json.loads(printed(capsys, "--all", "--like", str(path), "--json"))
    rows = said["like"]["rows"]
    assert rows["low"] < rows["middle"] < rows["high"]
    assert "counts as distinct" in said["like"]["assumed"][0]
    exact = ("--rows", str(round(rows["middle"])), "--raw-bytes", str(said["like"]["raw_bytes"]["middle"]))
    known = {
        each["topology"]: each["seconds"]
        for each in json.loads(printed(capsys, "--all", *exact, "--json"))["topologies"]
    }
    for each in said["topologies"]:
        seconds, narrow = each["seconds"], known[each["topology"]]
        assert seconds["low"] / seconds["middle"] < narrow["low"] / narrow["middle"]
        assert seconds["high"] / seconds["middle"] > narrow["high"] / narrow["middle"]


def test_reviews_that_cannot_be_read_have_the_sentences_of_preprocessing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for content, part in ((b"", "is empty"), (b'{"a": 1}\n{"a": 2}\n', "--text-field")):
        (tmp_path / "bad.json").write_bytes(content)
        assert main(["plan", "starter", "--offline", "--like", str(tmp_path / "bad.json")]) == 1
        error = capsys.readouterr().err
        assert part in error
        assert error.count("\n") == 1
    tens = "".join(json.dumps({"reviewText": f"good {number}", "overall": number % 11}) + "\n" for number in range(99))
    (tmp_path / "tens.json").write_text(tens)
    assert main(["plan", "starter", "--offline", "--like", str(tmp_path / "tens.json")]) == 1
    error = capsys.readouterr().err
    assert f"type: shoal plan starter --offline --like {tmp_path}/tens.json --rating-range 0 10" in error


def test_a_topology_is_predicted_by_the_rates_of_its_own_gpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [{"instance_type": kind, "gpus": 1} for kind in ("g5.xlarge", "g4dn.xlarge")]
    for batch, rows in ((64, 5_000), (512, 20_000)):
        run = a_run(tmp_path / "rates" / str(batch), batch=batch, rows=rows)
        assert run.summary is not None
        stages = [{"name": "start the nodes", "seconds": 500.0}, {"name": "train", "seconds": run.summary["wall"]}]
        (run.folder / "launch.json").write_text(json.dumps({"seconds": 900.0, "nodes": nodes, "stages": stages}))
    own = tmp_path / "two.yaml"
    groups = "".join(f"  - {{instance_type: {each['instance_type']}, count: 1}}\n" for each in nodes)
    own.write_text(f"description: two\ntraining:\n{groups}")
    asked = ("--rows", "100000", "--epochs", "2", "--rates", str(tmp_path / "rates"))
    text = printed(capsys, str(own), "--offline", *asked)
    assert "measured, lstm" in text
    assert "shoal calibrate" not in text
    assert main(["plan", "starter", "--offline", *asked]) == 1
    error = capsys.readouterr().err
    assert "1 g4dn.xlarge with 1 T4 each; calibrate" in error
    assert "shoal calibrate --deployment" in error
    (tmp_path / "rates" / "64" / "launch.json").unlink()
    (tmp_path / "rates" / "512" / "launch.json").write_text('{"nodes": "many"}')
    text = printed(capsys, str(own), "--offline", *asked)
    assert "this machine, by its rates, takes" in text
    assert "for $0.00" in text
