from shoal_guard import SweepError
from shoal_guard.price_lists import PriceList
from shoal_guard.sweep import monthly_prices
from shoal_guard.sweep.account import Account
from shoal_guard.sweep.sweeping import FoundResource


def test_a_broken_price_list_raises_sweep_error(tmp_path, monkeypatch, messages):
    (tmp_path / "us-east-1.yaml").write_text("date: new\nsource: s\ninstances: {}\n")
    monkeypatch.setattr(PriceList, "newest", lambda _region: PriceList.lists("us-east-1", tmp_path)[-1])
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    volume = FoundResource(kind="volume", identifier="vol-1", billed=True, record={"Size": 1})
    with messages.raises(SweepError):
        monthly_prices.price_of(Account(), volume)
