"""Broken SDF never gives anything but a robot or an error that names the place."""

import copy
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from sdf_documents import JOINTS, MUSCLES, NESTED, WORLD

from cards_core.errors import DescriptionError
from cards_core.formats import find_model, parse_muscle_block, read_sdf

DOCUMENTS = {
    "joints": JOINTS,
    "nested": NESTED,
    "planar_2r": find_model("planar_2r").read_text(),
    "world": WORLD,
    "muscles": MUSCLES,
}
TEXTS = (
    "", " ", "nan", "-inf", "inf", "1e400", "1e308", "-1e15", "1e-320", "0", "-1", "0 0", "0 0 0",
    "1 2 3 4 5 6 7 8", "1_0", "\u0661", "0x10", "abc", "9" * 400, "1e", "--1", "a::b", "::",
    "world", "__model__", "__root__", "true", "maybe", "1 nan 3", "0 0 0 0 0 0 1e300",
    "\u2028", "%s%n",
)  # fmt: skip
TAGS = ("link", "joint", "model", "frame", "pose", "plugin", "muscle", "via_point", "include",
        "uri", "axis", "xyz", "inertial", "mass", "world", "static", "x", "gz:custom", "geometry",
        "mesh", "wrap", "pulley", "wrap_surface", "parameters", "spring", "sphere", "tension",
        "home", "limit", "lower", "child", "parent")  # fmt: skip
ATTRIBUTES = ("name", "relative_to", "attached_to", "expressed_in", "degrees", "rotation_format",
              "type", "link", "min", "max", "joint", "version", "canonical_link",
              "placement_frame", "merge", "surface", "side", "inside", "radius", "axis",
              "friction", "stiffness", "x")  # fmt: skip
PROLOGUES = (
    '<!DOCTYPE sdf [<!ENTITY a "1"><!ENTITY b "&a;&a;&a;">]>',
    '<!DOCTYPE sdf SYSTEM "file:///etc/passwd">',
    '<!DOCTYPE sdf [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x"> %p;]>',
    '<?xml version="1.0" encoding="utf-32"?>',
    '<?xml version="1.0" encoding="no-such-code"?>',
    '<?xml version="1.1"?>',
    "\ufeff",
    "<!-- -- -->",
)


def pick(rng, items):
    return items[int(rng.integers(len(items)))]


def elements_of(root):
    return list(root.iter())


def parent_of(root, element):
    return next((p for p in root.iter() if element in list(p)), None)


def names_in(root):
    return [e.get("name") for e in root.iter() if e.get("name")] or ["a"]


# Mutations of the tree: each changes `root` in place ------------------------------------------


def drop(rng, root):
    element = pick(rng, elements_of(root))
    parent = parent_of(root, element)
    if parent is not None:
        parent.remove(element)


def duplicate(rng, root):
    element = pick(rng, elements_of(root))
    parent = parent_of(root, element)
    if parent is not None:
        parent.append(copy.deepcopy(element))


def move(rng, root):
    element, target = pick(rng, elements_of(root)), pick(rng, elements_of(root))
    parent = parent_of(root, element)
    if parent is not None and target not in list(element.iter()):
        parent.remove(element)
        target.append(element)


def rename(rng, root):
    pick(rng, elements_of(root)).tag = pick(rng, TAGS)


def set_text(rng, root):
    pick(rng, elements_of(root)).text = pick(rng, TEXTS)


def set_number(rng, root):
    element = pick(rng, [e for e in root.iter() if (e.text or "").strip()] or [root])
    words = (element.text or "").split() or ["0"]
    words[int(rng.integers(len(words)))] = pick(rng, TEXTS)
    element.text = " ".join(words)


def set_attribute(rng, root):
    element = pick(rng, elements_of(root))
    element.set(pick(rng, ATTRIBUTES), pick(rng, (*TEXTS, *names_in(root))))


def change_attribute(rng, root):
    element = pick(rng, [e for e in root.iter() if e.attrib] or [root])
    if element.attrib:
        element.set(pick(rng, list(element.attrib)), pick(rng, (*TEXTS, *names_in(root))))


def drop_attribute(rng, root):
    element = pick(rng, elements_of(root))
    if element.attrib:
        del element.attrib[pick(rng, list(element.attrib))]


def point_pose(rng, root):
    """Give a pose in some frame, often in a circle."""
    posed = [e for e in root.iter() if e.tag in ("link", "joint", "frame", "model")]
    element = pick(rng, posed or [root])
    pose = element.find("pose")
    if pose is None:
        pose = ET.SubElement(element, "pose")
    pose.set("relative_to", pick(rng, names_in(root)))


def attach_frame(rng, root):
    """Attach a frame to some name, often in a circle."""
    frames = [e for e in root.iter() if e.tag == "frame"]
    model = pick(rng, [e for e in root.iter() if e.tag == "model"] or [root])
    if not frames or rng.random() < 0.3:
        frames = [ET.SubElement(model, "frame", name=f"f{int(rng.integers(99))}")]
    pick(rng, frames).set("attached_to", pick(rng, names_in(root)))


def rewire(rng, root):
    ends = [e for e in root.iter() if e.tag in ("parent", "child")]
    if ends:
        pick(rng, ends).text = pick(rng, names_in(root))


def nest(rng, root):
    """Wrap an element into many copies of its own tag."""
    element = pick(rng, elements_of(root))
    parent = parent_of(root, element)
    if parent is None:
        return
    outer = inner = ET.Element(element.tag, element.attrib)
    for _ in range(int(pick(rng, (2, 30, 200)))):
        inner = ET.SubElement(inner, element.tag, element.attrib)
    parent.remove(element)
    inner.append(element)
    parent.append(outer)


def include(rng, root):
    model = pick(rng, [e for e in root.iter() if e.tag in ("model", "world")] or [root])
    element = ET.SubElement(model, "include")
    if rng.random() < 0.3:
        element.set("merge", "true")
    uris = ("model://planar_2r", "model://", "../../../etc", "https://example.invalid/x", "a\tb",
            "model://planar_2r/model.sdf", "x" * 5000, "file:///dev/zero", "/")  # fmt: skip
    ET.SubElement(element, "uri").text = pick(rng, uris)
    if rng.random() < 0.5:
        ET.SubElement(element, "name").text = pick(rng, names_in(root))
    if rng.random() < 0.3:
        ET.SubElement(element, "placement_frame").text = pick(rng, ("tip", "link_2", "nothing"))
        ET.SubElement(element, "pose").text = "0 0 1 0 0 0"


TREE_MUTATIONS = (
    drop, duplicate, move, rename, set_text, set_number, set_number, set_attribute,
    change_attribute, drop_attribute, point_pose, attach_frame, rewire, nest, include,
)  # fmt: skip


# Mutations of the text ------------------------------------------------------------------------


def truncate(rng, text):
    return text[: int(rng.integers(len(text) + 1))]


def garble(rng, text):
    letters = list(text)
    for _ in range(int(rng.integers(1, 8))):
        letters[int(rng.integers(len(letters)))] = chr(int(pick(rng, (0, 1, 38, 60, 62, 34, 97))))
    return "".join(letters)


def cut(rng, text):
    a, b = sorted(rng.integers(len(text), size=2))
    return text[:a] + text[min(b, a + 300) :]


def repeat(rng, text):
    a, b = sorted(rng.integers(len(text), size=2))
    return text[:b] + text[a:]


def prologue(rng, text):
    return pick(rng, PROLOGUES) + text


def entity(rng, text):
    return text.replace("0", pick(rng, ("&a;", "&#0;", "&#x110000;", "&lt;", "&")), 1)


TEXT_MUTATIONS = (truncate, garble, cut, repeat, prologue, entity)


def broken(rng, text):
    """Return a mutated document, as text or as bytes."""
    if rng.random() < 0.8:
        root = ET.fromstring(text)
        for _ in range(int(rng.integers(1, 5))):
            pick(rng, TREE_MUTATIONS)(rng, root)
        text = ET.tostring(root, encoding="unicode")
        if rng.random() < 0.1:
            text = pick(rng, TEXT_MUTATIONS)(rng, text)
    else:
        for _ in range(int(rng.integers(1, 3))):
            text = pick(rng, TEXT_MUTATIONS)(rng, text)
    if rng.random() < 0.2:
        data = bytearray(text.encode("utf-8", "replace"))
        if data and rng.random() < 0.5:
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
        return bytes(data)
    return text


def outcome(document):
    """Return a robot with its tree, or the error; other exceptions pass."""
    try:
        robot = read_sdf(document, name="fuzz.sdf")
    except DescriptionError as error:
        return error
    tree = robot.tree
    assert np.isfinite(tree.home).all()
    return robot


@pytest.mark.parametrize("name", DOCUMENTS)
def test_broken_documents_give_a_robot_or_an_error_with_a_place(name):
    rng = np.random.default_rng(list(DOCUMENTS).index(name))
    robots = errors = 0
    for index in range(700):
        document = broken(rng, DOCUMENTS[name])
        try:
            result = outcome(document)
        except Exception as error:
            raise AssertionError(f"document {index}: {error!r}\n{document!r}") from error
        if not isinstance(result, DescriptionError):
            robots += 1
            continue
        errors += 1
        message = str(result)
        # an included file may be the one at fault
        assert result.source == "fuzz.sdf" or str(result.source).endswith(".sdf"), message
        assert result.line is not None, message
        assert len(message) < 3000, message
    # the mutations must neither all be harmless nor all be fatal at the first character
    assert errors > 350
    assert robots > 20


def block_error(text):
    try:
        parse_muscle_block(text, name="plugin")
    except DescriptionError as error:
        return error
    return None


@pytest.mark.parametrize("name", ["joints", "muscles"])
def test_broken_muscle_blocks_give_a_block_or_an_error_with_a_line(name):
    rng = np.random.default_rng(9)
    plugin = ET.fromstring(DOCUMENTS[name]).find("model/plugin")
    text = ET.tostring(plugin, encoding="unicode")
    for _ in range(400):
        document = broken(rng, "<sdf>" + text + "</sdf>")
        document = document if isinstance(document, str) else document.decode("utf-8", "ignore")
        start, end = document.find("<plugin"), document.rfind("</plugin>")
        error = block_error(document[start : end + 9])
        assert error is None or (error.source == "plugin" and error.line is not None), error


@pytest.mark.parametrize("kind", ["relative_to", "attached_to", "nested", "chain"])
def test_long_circles_and_chains_end(kind):
    size = 600
    if kind == "relative_to":
        body = "".join(
            f'<link name="l{i}"><pose relative_to="l{(i + 1) % size}"/></link>'
            for i in range(size)
        )
    elif kind == "attached_to":
        body = '<link name="l"/>' + "".join(
            f'<frame name="f{i}" attached_to="f{(i + 1) % size}"/>' for i in range(size)
        )
    elif kind == "nested":
        body = '<model name="m">' * size + '<link name="l"/>' + "</model>" * size
    else:
        body = '<link name="l0"/>' + "".join(
            f'<frame name="f{i}"><pose relative_to="f{i + 1}">0 0 1 0 0 0</pose></frame>'
            for i in range(size)
        ) + f'<frame name="f{size}"/>'  # fmt: skip
    document = f'<sdf version="1.11"><model name="top">{body}</model></sdf>'
    if kind == "chain":
        robot = read_sdf(document)
        assert robot.frame("f0").pose.translation[2] == size
    else:
        with pytest.raises(DescriptionError, match=r"circle|nested more than"):
            read_sdf(document)


def test_entities_are_neither_expanded_nor_fetched(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("1")
    bomb = "".join(f'<!ENTITY e{i + 1} "{10 * f"&e{i};"}">' for i in range(12))
    for declaration in (
        f'<!ENTITY e0 "1">{bomb}',
        f'<!ENTITY e12 SYSTEM "{secret}">',
        '<!ENTITY e12 SYSTEM "http://127.0.0.1:9/">',
    ):
        text = f"<!DOCTYPE sdf [{declaration}]><sdf version='1.11'><model name='&e12;'/></sdf>"
        with pytest.raises(DescriptionError, match="declares the entity"):
            read_sdf(text)
    outside = '<!DOCTYPE sdf SYSTEM "x.dtd"><sdf version="1.11"><model name="&e;"/></sdf>'
    with pytest.raises(DescriptionError, match="entity"):
        read_sdf(outside)
