"""The XML layer: lines, sources, labels, and what it refuses."""

import io
import xml.etree.ElementTree as ET

import pytest

from cards_core.errors import DescriptionError
from cards_core.formats.xml_lines import MAX_DEPTH, XmlElement, parse_xml

TEXT = """<?xml version="1.0"?>
<!-- a comment
     of two lines -->
<robot name="r">
  <link
      name="a">
    <mass>1</mass> tail
  </link>
</robot>
"""


def test_elements_know_their_line_source_and_parent():
    root = parse_xml(TEXT, name="r.xml")
    link = root.child("link")
    mass = link.child("mass")
    assert (root.line, link.line, mass.line) == (4, 5, 7)
    assert mass.source == "r.xml"
    assert mass.parent is link
    assert root.parent is None
    assert isinstance(mass, XmlElement)


def test_the_tree_is_that_of_the_standard_library():
    assert ET.tostring(parse_xml(TEXT)) == ET.tostring(ET.fromstring(TEXT))


def test_text_bytes_path_and_file_give_the_same(tmp_path):
    path = tmp_path / "r.xml"
    path.write_text(TEXT)
    expected = ET.tostring(ET.fromstring(TEXT))
    for source in (TEXT, TEXT.encode(), path, io.StringIO(TEXT), io.BytesIO(TEXT.encode())):
        assert ET.tostring(parse_xml(source)) == expected
    with path.open("rb") as file:
        assert parse_xml(file).source == str(path)
    assert parse_xml(path).source == str(path)


def test_encodings_are_respected():
    text = '<?xml version="1.0" encoding="latin-1"?><a>\xe4</a>'
    assert parse_xml(text.encode("latin-1")).text == "\xe4"
    assert parse_xml(text).text == "\xe4"  # decoded already: the declaration is moot
    assert parse_xml("<a>\xe4</a>".encode("utf-16")).text == "\xe4"


def test_labels_name_the_element_in_words():
    root = parse_xml(TEXT)
    assert root.child("link").label == "link 'a'"
    assert root.child("link").child("mass").label == "<mass> of link 'a'"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("<a>\n<b>\n</a>", 3, "mismatched tag"),
        ("", 1, "is empty"),
        ("<!-- a -->\n", 2, "no element found"),
        ("<a>\n  <b x=1/>\n</a>", 2, "malformed XML"),
        ('<!DOCTYPE a [\n<!ENTITY e "x">]><a>&e;</a>', 2, "declares the entity 'e'"),
        ('<!DOCTYPE a SYSTEM "a.dtd">\n<a>&e;</a>', 2, "uses the entity '&e;'"),
        ('<!DOCTYPE a SYSTEM "a.dtd">\n<!--\n&no; -->\n<a b="&e;"/>', 4, "uses the entity '&e;'"),
        ("<a>\n" * (MAX_DEPTH + 1), MAX_DEPTH + 1, "nested more than"),
        (b'<?xml version="1.0" encoding="klingon"?><a/>', 1, "cannot be decoded"),
    ],
)
def test_errors_carry_the_line(text, line, message):
    with pytest.raises(DescriptionError, match=message) as caught:
        parse_xml(text, name="bad.xml")
    assert caught.value.line == line
    assert caught.value.source == "bad.xml"


def test_a_doctype_is_tolerated_and_not_fetched(tmp_path):
    dtd = tmp_path / "a.dtd"
    dtd.write_text('<!ENTITY e "from the file">')
    root = parse_xml(f'<!DOCTYPE a SYSTEM "{dtd}"><a>&amp;&#65;</a>')
    assert root.text == "&A"


def test_unreadable_files_are_errors_of_ours(tmp_path):
    for path, message in ((tmp_path, "is a folder"), (tmp_path / "x.xml", "no such file")):
        with pytest.raises(DescriptionError, match=message):
            parse_xml(path)
