"""The tables of the protocol contradict neither themselves nor what is generated from them."""

import pytest

from cards_hardware.protocol import generate
from cards_hardware.protocol.enums import ENUMS, AckCode, DescribedFlag, ParameterId
from cards_hardware.protocol.generate import c_codec, golden
from cards_hardware.protocol.schema import MAX_PAYLOAD, MAX_WIRE, QUANTITIES, WIRE, message
from cards_hardware.protocol.table import BY_ID, MESSAGES


def test_types_and_names_are_unique():
    assert len(BY_ID) == len(MESSAGES)
    assert all(0 < number < 256 for number in BY_ID)
    assert len({int(parameter) for parameter in ParameterId}) == len(ParameterId.__members__)
    for kind in ENUMS:
        assert len(list(kind)) == len(kind.__members__), f"{kind.__name__} has a number twice"


def test_every_message_fits_into_a_frame():
    for item in MESSAGES.values():
        assert item.min_payload <= item.max_payload <= MAX_PAYLOAD, item.name
    assert MAX_WIRE >= 512 + 3


def test_flags_are_single_bits():
    for kind in ENUMS:
        if issubclass(kind, DescribedFlag):
            assert [int(member) for member in kind] == [1 << i for i in range(len(kind))]


def test_everything_is_described():
    for kind in ENUMS:
        assert all(member.text for member in kind)
    assert all(parameter.text for parameter in ParameterId)
    assert all(field.text for item in MESSAGES.values() for field in item.fields())
    assert set(c_codec.PREFIX) == set(ENUMS)


def test_every_refusal_has_a_counter():
    (refused,) = [g for g in MESSAGES["STATE_SLOW"].groups if g.fields[0].name == "refused"]
    assert sorted(map(int, AckCode)) == list(range(refused.count + 1))


def test_parameters_start_within_their_ranges():
    for parameter in ParameterId:
        assert parameter.minimum <= parameter.default <= parameter.maximum, parameter.name
        assert WIRE["i32"].minimum < parameter.minimum <= parameter.maximum <= WIRE["i32"].maximum
        assert parameter.scale > 0


def test_stages_of_the_watchdog_follow_each_other():
    hold, relax, disarm = (
        ParameterId.WATCHDOG_HOLD,
        ParameterId.WATCHDOG_RELAX,
        ParameterId.WATCHDOG_DISARM,
    )
    assert (hold.default, relax.default, disarm.default) == (24, 100, 1000)
    assert hold.scale == relax.scale == disarm.scale == 1e-3


def test_scales_are_whole_or_one_over_whole():
    """Then a decimal fraction comes back as the float that is nearest to it."""
    for name, quantity in QUANTITIES.items():
        scale = quantity.scale if quantity.scale >= 1 else 1 / quantity.scale
        assert scale == pytest.approx(round(scale), rel=1e-12), name


@pytest.mark.parametrize(
    "lines",
    [
        ["[muscles] a: u8, no count"],
        ["muscles: u8, count", "[muscles] a: u8, one", "b: u8, behind a group"],
        ["a: u8, one", "a: u8, again"],
        ["a: u7, no such type"],
        ["muscles: u8, count", "[muscles] a: u32, x", *(f"[30] f{i}: u32, x" for i in range(8))],
    ],
)
def test_a_table_that_cannot_be_is_refused(lines):
    with pytest.raises(ValueError, match=r".+"):
        message("X", 1, "host", "text", *lines)


def test_generated_files_are_up_to_date(capsys):
    assert generate.main(["--check"]) == 0, capsys.readouterr().out


def test_check_sees_a_change_and_generate_mends_it(tmp_path, capsys):
    assert generate.main(["--check", "--top", str(tmp_path)]) == 1
    assert not list(tmp_path.iterdir())
    assert generate.main(["--top", str(tmp_path)]) == 0
    assert generate.main(["--check", "--top", str(tmp_path)]) == 0
    header = tmp_path / "firmware" / "core" / "protocol.h"
    header.write_text(header.read_text().replace("MLP_STATE_HOLD = 4", "MLP_STATE_HOLD = 5"))
    capsys.readouterr()
    assert generate.main(["--check", "--top", str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith("firmware/core/protocol.h")


def test_there_are_golden_vectors_of_every_message():
    names = [name for name, _ in golden.frames()]
    assert set(MESSAGES) <= set(names)
