"""Histograms of times."""

from cards_hardware.histogram import ENDS, Histogram


def histogram(**counts):
    """Counts by the end of their bin, ``e10``; ``more`` for the last bin."""
    values = [counts.get(f"e{end}", 0) for end in ENDS]
    return Histogram((*values, counts.get("more", 0)))


def test_it_is_words_and_numbers():
    one = histogram(e10=980, e1000=18, more=2)
    assert str(one) == "<=10us 980, <=1ms 18, >100ms 2"
    assert str(Histogram()) == "none"
    assert one.total == 1000
    assert str(one + histogram(e20=1)) == "<=10us 980, <=20us 1, <=1ms 18, >100ms 2"
