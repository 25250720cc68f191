"""One reader of tables: what spreadsheets write, and what no reader may drop."""

import io
import math
import re
import zipfile

import numpy as np
import pytest

from cards_bringup.cli.analyse.point_analysis import read_table
from cards_bringup.cli.analyse.rods.force_sensing import read_bases, read_shapes
from cards_core.analysis.workspace import read_points
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.rods import read_rod_robot
from cards_core.table_files import open_csv

TREE = load("planar_2r").tree
NAMES = TREE.position_names
RODS = read_rod_robot("planar_3efr")

LINES = ",".join(NAMES) + "\n" + ",".join("1" for _ in NAMES) + "\n"
SHAPES = f"limb,x,y,z\n{RODS.limbs[0].name},1,2,3\n"
BASES = "limb,fx,fy,fz,mx,my,mz\n" + "".join(f"{limb.name},1,2,3,4,5,6\n" for limb in RODS.limbs)

READERS = {
    "input": (lambda file: read_table(file, TREE, main="q"), LINES),
    "points": (lambda file: read_points(file, TREE), LINES),
    "shapes": (lambda file: read_shapes(file, RODS, 1e-3), SHAPES),
    "bases": (lambda file: read_bases(file, RODS), BASES),
}
"""All that commands read from CSV, by their option."""


ROWS = np.zeros((2, TREE.nq))

NO_TABLES = {
    "complex": lambda file: np.savez(file, q=ROWS.astype(complex)),
    "dates": lambda file: np.savez(file, q=ROWS.astype("M8[s]")),
    "records": lambda file: np.savez(file, q=np.zeros(2, dtype=[("a", float)])),
    "texts": lambda file: np.savez(file, q=ROWS.astype(str)),
    "objects": lambda file: np.savez(file, q=np.array([{}, None], dtype=object)),
    "one array": lambda file: file.write_bytes(npy(ROWS)),
    "text": lambda file: file.write_text("hello"),
    "nothing": lambda file: file.touch(),
    "a folder": lambda file: file.mkdir(),
    "too large": lambda file: huge(file),
}
"""What is called .npz and has no numbers to give."""


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def huge(file):
    """Write an array whose head speaks of more elements than any memory holds."""
    head = io.BytesIO()
    shape = (2**50, TREE.nq)
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("q.npy", head.getvalue())


@pytest.mark.parametrize("kind", NO_TABLES)
@pytest.mark.parametrize("option", ["input", "points"])
@pytest.mark.filterwarnings("error")
def test_archives_without_numbers_are_named(tmp_path, option, kind):
    file = tmp_path / "table.npz"
    NO_TABLES[kind](file)
    with pytest.raises(CardsError, match=r"\(expected: .*NPZ|expected: .*npz") as caught:
        READERS[option][0](file)
    assert str(caught.value).startswith(str(file))
    assert "allow_pickle" not in str(caught.value)


@pytest.mark.parametrize("kind", [bool, int, np.float32])
def test_archives_of_any_real_numbers_are_read(tmp_path, kind):
    np.savez(tmp_path / "table.npz", q=np.ones((2, TREE.nq), dtype=kind), notes=np.array(["a"]))
    assert read_table(tmp_path / "table.npz", TREE, main="q")["q"].tolist() == [[1.0, 1.0]] * 2


@pytest.fixture(params=READERS)
def reader(request):
    return READERS[request.param]


def put(folder, text, **options):
    file = folder / "table.csv"
    file.write_text(text, **{"encoding": "utf-8", **options})
    return file


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_files_of_spreadsheets(tmp_path, reader, encoding, newline):
    read, text = reader
    read(put(tmp_path, text + "\n  \n", encoding=encoding, newline=newline))


@pytest.mark.parametrize(("more", "by"), [(",7", 1), ("", -1), (",,", 2)])
def test_values_too_many_or_too_few_are_named(tmp_path, reader, more, by):
    read, text = reader
    head, first, *rest = text.splitlines()
    count = len(head.split(","))
    wrong = first + more if more else first.rpartition(",")[0]
    file = put(tmp_path, "\n".join([head, "", wrong, *rest]))
    with pytest.raises(CardsError) as caught:
        read(file)
    assert str(caught.value).startswith(f"{file}:3: {count + by} values (expected: {count}, as")


def test_what_is_no_table(tmp_path, reader):
    read, text = reader
    head, first = text.splitlines()[:2]
    words = head.split(",")
    wrong = {
        "": "is empty",
        "\n \n": "is empty",
        f"{head},{words[1]}\n{first},1\n": ":1: column '.*' is there twice",
        f"{head}\n{first.rpartition(',')[0]},x\n": rf":2: {words[-1]} is 'x' \(expected: a number",
        f'{head}\n"{first}\n': r"\(expected: a CSV file\)",
    }
    for content, message in wrong.items():
        with pytest.raises(CardsError, match=message):
            read(put(tmp_path, content))
    with pytest.raises(CardsError, match=r"\(expected: a CSV file\)"):
        read(put(tmp_path, text + "\u00e9", encoding="latin-1"))


@pytest.mark.parametrize("option", ["input", "points"])
def test_an_empty_cell_is_a_point_without_an_answer(tmp_path, option):
    read, text = READERS[option]
    file = put(tmp_path, text + "," * (len(NAMES) - 1) + "\n")
    found = read(file)
    q = found["q"] if option == "input" else found.bind(TREE).values(0, 2)
    np.testing.assert_array_equal(np.isnan(q), [[False] * len(NAMES), [True] * len(NAMES)])


def test_numbers_and_lines(tmp_path):
    table = open_csv(put(tmp_path, 'a, b \n1," 2"\n\n3,\n', encoding="utf-8-sig"))
    assert table.head == ("a", "b")
    assert list(table.rows()) == [(2, ["1", "2"]), (4, ["3", ""])]
    assert table.number(2, "b", "2") == 2.0
    assert math.isnan(table.number(4, "b", "", empty=True))
    with pytest.raises(CardsError, match=r"table\.csv:4: b is ''"):
        table.number(4, "b", "")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_and_decimal_commas(tmp_path, reader, separator):
    read, text = reader
    plain, other = tmp_path / "plain.csv", tmp_path / "other.csv"

    def written(one, mark):
        return re.sub(r"(?<=[,\n])1(?=[,\n])", one.replace(",", "C"), text).replace(",", mark)

    plain.write_text(written("1.25", ","))
    other.write_text(written("1,25", separator).replace("C", ","))
    assert repr(read(other)) == repr(read(plain))
    other.write_text(written("1.000,25", separator).replace("C", ","))
    with pytest.raises(CardsError, match=r"other.csv:2: .* is '1.000,25' .expected: a number"):
        read(other)


MOTION = "swing\nversion=1\nnRows=2\nnColumns=3\ninDegrees={}\nendheader\n{}\n"


def test_motions_of_opensim(tmp_path):
    file = tmp_path / "swing.mot"
    rows = f"time\t{NAMES[0]}  {NAMES[1]}\n0\t10 \t-20\n0.5\t30\t45"
    file.write_text(MOTION.format("yes", rows))
    found = read_table(file, TREE, main="q")
    assert found["time"].tolist() == [[0.0], [0.5]]
    np.testing.assert_allclose(found["q"], np.radians([[10, -20], [30, 45]]), rtol=1e-15)
    file.write_text(MOTION.format("no", rows))
    assert read_table(file, TREE, main="q")["q"].tolist() == [[10, -20], [30, 45]]
    file.write_text(MOTION.format("no", rows + "\n1\t2"))
    with pytest.raises(CardsError, match=r"swing.mot:10: 2 values .expected: 3"):
        read_table(file, TREE, main="q")


def test_lengths_are_no_degrees_and_states_have_paths(tmp_path):
    """A robot with sliding and turning joints, in a file of states."""
    tree = load("planar_xy").tree
    path = "/jointset/any/{}/{}".format
    names = [path(name, kind) for kind in ("value", "speed") for name in tree.position_names]
    values = " ".join("1.5" for _ in names)
    file = tmp_path / "states.sto"
    file.write_text(MOTION.format("yes", f"time {' '.join(names)} other\n0 {values} 7"))
    found = read_table(file, tree, main="q")
    turned = math.radians(1.5)
    assert found["q"].tolist() == found["qd"].tolist() == [[1.5, 1.5, pytest.approx(turned)]]


def test_degrees_are_refused_where_nothing_converts_them(tmp_path):
    file = tmp_path / "points.csv"
    file.write_text(MOTION.format("yes", LINES.replace(",", " ")))
    with pytest.raises(CardsError, match=r"inDegrees=yes .expected: radians"):
        read_points(file, TREE)
