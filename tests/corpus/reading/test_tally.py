from hypothesis import given, settings
from hypothesis import strategies as st

from common.display import is_printable
from corpus.reading.formats import MALFORMED_REASONS
from corpus.reading.tally import MalformedLine, Tally, excerpt_of, is_tally_key

# Input of one task: for each range (file, start), a list of its lines. A malformed line is given by its reason.
RANGES = st.dictionaries(
    st.tuples(st.sampled_from(["/a", "/b\u00fc\u2028", "s3://c/d"]), st.integers(0, 3).map(lambda n: n << 20)),
    st.lists(st.sampled_from([None, *MALFORMED_REASONS[:3]]), max_size=8),
    max_size=8,
)


def tally_of(parts: dict[tuple[str, int], list[str | None]]) -> Tally:
    tally = Tally()
    for (address, start), lines in parts.items():
        for number, reason in enumerate(lines, 1):
            if reason is None:
                tally.counts["lines"] += 1
            else:
                tally.count_malformed(reason, address, start, number, f"line {number}\t\u00e9\xff".encode("latin-1"))
        tally.add_range(address, start, len(lines), damaged="not_csv" in lines)
    return tally


def absorbed(tallies: list[Tally]) -> Tally:
    """Return the sum of tallies, computed from their records, which are grouped by key as after a job's shuffle."""
    whole = Tally()
    by_key: dict[bytes, list[bytes]] = {}
    for tally in tallies:
        for key, value in tally.records():
            assert is_tally_key(key)
            assert (key + value).isascii()
            assert b"\t" not in value
            assert b"\n" not in value
            by_key.setdefault(key, []).append(value)
    for key, values in by_key.items():
        whole.add_records(key, values)
    return whole


@settings(max_examples=50)
@given(RANGES, st.lists(st.integers(0, 3), min_size=8, max_size=8), st.randoms(use_true_random=False))
def test_any_split_and_order_of_tasks_gives_the_same_sum(parts, task_of, random) -> None:
    at_once = tally_of(parts)
    items = list(parts.items())
    random.shuffle(items)
    tasks = [dict(item for item, task in zip(items, task_of, strict=False) if task == number) for number in range(4)]
    halves = [absorbed([tally_of(task) for task in some]) for some in (tasks[:2], tasks[2:])]
    random.shuffle(halves)
    for whole in (absorbed(halves), absorbed([tally_of(task) for task in reversed(tasks)])):
        assert whole.counts == at_once.counts
        assert whole.malformed_lines() == at_once.malformed_lines()
        assert whole.damage_reports() == at_once.damage_reports()
        assert sorted(whole.records()) == sorted(at_once.records())


def test_a_malformed_line_shows_its_first_eighty_readable_characters_without_terminal_commands() -> None:
    tally = Tally()
    tally.count_malformed("not_json", "/a", 0, 1, "\u00e9".encode() * 200)
    tally.count_malformed("not_utf8", "/a", 0, 2, b"a\xffb\0")
    assert tally.malformed_lines() == [
        MalformedLine(reason="not_utf8", file="/a", line=2, begins="a\ufffdb?"),
        MalformedLine(reason="not_json", file="/a", line=1, begins="\u00e9" * 80),
    ]
    assert excerpt_of(b"5\ta \x1b[31mred\x07 lamp\r") == "5 a ?[31mred? lamp "
    assert is_printable(excerpt_of(bytes(range(256))))
