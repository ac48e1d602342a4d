import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shoal_guard.handlers.guard.parameters import MOST_HOURS, read_account, read_extension, write_account
from shoal_guard.handlers.guard.rules import GuardState, SentNotice

NOW = datetime(2030, 5, 1, 12, tzinfo=UTC)
TIMES = st.datetimes(datetime(2029, 1, 1), datetime(2030, 5, 1), timezones=st.just(UTC))
DOLLARS = st.floats(0, 1e9)
ACCOUNTS = st.builds(
    GuardState,
    spent=DOLLARS,
    as_of=st.none() | TIMES,
    rate=DOLLARS,
    by_use=DOLLARS,
    notices=st.dictionaries(
        st.sampled_from(["end", "budget", "deletion"]), st.builds(SentNotice, value=st.text(), at=TIMES)
    ),
)


@given(ACCOUNTS)
def test_an_account_is_read_as_it_was_written(account):
    assert read_account(write_account(account), NOW) == account


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
BROKEN = st.fixed_dictionaries({}, optional=dict.fromkeys(("spent", "as_of", "rate", "by_use", "told"), JSON))


@given(st.text() | JSON.map(json.dumps) | BROKEN.map(json.dumps))
def test_any_text_is_a_valid_account_or_refused(text):
    try:
        account = read_account(text, NOW)
    except ValueError:
        return
    assert 0 <= account.spent < float("inf")
    assert 0 <= account.rate < float("inf")
    assert 0 <= account.by_use < float("inf")
    times = [notice.at for notice in account.notices.values()] + ([account.as_of] if account.as_of else [])
    assert all(time - NOW <= timedelta(days=1) for time in times)


@pytest.mark.parametrize(
    "broken",
    [
        "?",
        "[]",
        '{"told": []}',
        '{"told": {"end": 1}}',
        '{"told": {"end": {"value": "x"}}}',
        '{"told": {"end": {"value": "x", "at": "2099-01-01T00:00:00+00:00"}}}',
        '{"as_of": "2030-05-03T12:00:00+00:00"}',
        '{"as_of": "2030-05-01T11:00:00"}',
        '{"as_of": 5}',
        '{"spent": NaN}',
        '{"spent": Infinity}',
        '{"spent": -1000}',
        '{"spent": "5"}',
        '{"rate": true}',
        pytest.param("[" * 4096, id="nested"),
        pytest.param('{"spent": 1' + "0" * 400 + "}", id="long"),
    ],
)
def test_a_broken_account_is_refused_with_its_fault(broken, messages):
    with messages.raises(ValueError):
        read_account(broken, NOW)


def test_a_repeated_round_accepts_an_account_of_a_later_round():
    later = GuardState(spent=1.0, as_of=NOW + timedelta(hours=6))
    assert read_account(write_account(later), NOW) == later


def test_the_extension_must_be_a_number_of_hours(messages):
    assert [read_extension(text) for text in ("0", "1.5", " 4\n")] == [0.0, 1.5, 4.0]
    for text in ("", "many", "nan", "inf", "-1", f"{MOST_HOURS + 1:g}1", "1 h"):
        with messages.raises(ValueError):
            read_extension(text)
