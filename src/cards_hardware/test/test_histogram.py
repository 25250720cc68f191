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


def test_every_bin_has_the_name_of_its_end():
    whole = Histogram(tuple(range(1, 15)))
    assert str(whole) == (
        "<=10us 1, <=20us 2, <=50us 3, <=100us 4, <=200us 5, <=500us 6, <=1ms 7, <=2ms 8, "
        "<=5ms 9, <=10ms 10, <=20ms 11, <=50ms 12, <=100ms 13, >100ms 14"
    )
    assert whole.total == 105
    assert Histogram().counts == (0,) * 14
    assert (whole + whole).counts == tuple(range(2, 30, 2))
