"""Attributes that MuJoCo dropped: those that change no robot are left out with a warning."""

import numpy as np
import pytest

from cards_core.errors import DescriptionError
from cards_sim.mjcf.importer import import_mjcf

MODEL = """<mujoco model="old">
  <compiler angle="radian"{compiler}/>
  <option timestep="0.01"{option}><flag{flag}/></option>
  {more}
  <worldbody><site name="a" pos="0.1 0 0.2"/><body name="bar">
    <inertial pos="0 0 -0.1" mass="0.6" diaginertia="2e-3 2e-3 2e-4"/>
    <joint name="hinge" axis="0 1 0" range="-1 1"/><site name="b" pos="0.02 0 -0.08"/>
  </body></worldbody>
  <tendon><spatial name="cord"><site site="a"/><site site="b"/></spatial></tendon>
  <actuator><motor name="cord" tendon="cord" ctrlrange="-50 0"/></actuator>
</mujoco>
"""


def write(path, *, compiler="", option="", flag="", more=""):
    path.parent.mkdir(exist_ok=True)
    path.write_text(MODEL.format(compiler=compiler, option=option, flag=flag, more=more))
    return path


def obsolete(imported):
    return [item for item in imported.findings if item.code == "obsolete"]


@pytest.mark.parametrize(
    ("where", "attribute", "line"),
    [
        ("compiler", 'convexhull="false"', 2),
        ("compiler", "exactmeshinertia='false'", 2),
        ("option", 'apirate="100"', 3),
        ("option", 'collision = "all"', 3),
        ("option", 'mpr_iterations="50"', 3),
        ("option", 'mpr_tolerance="1e-6"', 3),
        ("flag", 'sensornoise="disable"', 3),
        ("flag", 'passive="enable"', 3),
        ("flag", 'solverstat="enable"', 3),
    ],
)
def test_what_changes_no_robot_is_left_out_with_its_place(tmp_path, where, attribute, line):
    plain = import_mjcf(write(tmp_path / "plain.xml"))
    # over two lines: those of what follows stay
    old = import_mjcf(write(tmp_path / "old.xml", **{where: f"\n{attribute}"}))
    (said,) = obsolete(old)
    assert (said.level, said.line) == ("warning", line)
    assert said.source == str(tmp_path / "old.xml")
    assert said.message.startswith(attribute.split("=")[0].strip())
    assert not obsolete(plain)
    (cord,), (same,) = old.robot.muscles, plain.robot.muscles
    assert cord.line == same.line + 1
    for one, other in zip(cord.path, same.path, strict=True):
        np.testing.assert_array_equal(one.position, other.position)
    assert [link.inertia.mass for link in old.robot.links] == [0.6]


@pytest.mark.parametrize(
    ("where", "attribute", "words"),
    [
        ("option", 'collision="predefined"', "geoms touch by contype and conaffinity here"),
        ("flag", 'passive="disable"', "springs and damping, switched off there, act here"),
    ],
)
def test_what_leaving_it_out_changes_is_said(tmp_path, where, attribute, words):
    (said,) = obsolete(import_mjcf(write(tmp_path / "old.xml", **{where: f" {attribute}"})))
    assert words in said.message
    assert said.line == 3


def test_what_changes_the_robot_is_refused_with_what_it_became(tmp_path):
    file = write(tmp_path / "old.xml", compiler=' exactmeshinertia="true"')
    with pytest.raises(DescriptionError, match=r"old\.xml:2.*inertia='exact' at each <mesh>"):
        import_mjcf(file)


def test_included_and_attached_files(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "Inc.xml").write_text(
        "<mujoco>\n<!-- 'apirate' = \"x\" -->\n"
        '<option gravity="0 0 -1" apirate="9"/>'
        '<visual><quality numarrows="3"/></visual></mujoco>'
    )
    (tmp_path / "part" / "arm.xml").write_text(
        '<mujoco><option collision="all"/><worldbody><body name="b"><joint/>'
        '<geom size="1"/></body></worldbody></mujoco>'
    )
    more = (
        '<include file="part/../part/Inc.xml"/>'
        '<asset><model name="m" file="part/arm.xml"/></asset>'
        '<worldbody><attach model="m" body="b" prefix="x"/></worldbody>'
    )
    imported = import_mjcf(write(tmp_path / "old.xml", more=more, flag=' sensornoise="enable"'))
    places = {(item.source, item.line, item.message.split()[0]) for item in obsolete(imported)}
    part = tmp_path / "part"
    assert places == {
        (str(tmp_path / "old.xml"), 3, "sensornoise"),
        (str(part / "Inc.xml"), 3, "apirate"),
        (str(part / "Inc.xml"), 3, "numarrows"),
        (str(part / "arm.xml"), 1, "collision"),
    }
    np.testing.assert_array_equal(imported.robot.gravity, (0.0, 0.0, -1.0))
    assert len(imported.robot.links) == 2


def test_only_the_attribute_itself_goes(tmp_path):
    old = MODEL.replace('name="bar"', "name=\" mpr_tolerance='1'\"").format(
        compiler=' convexhull="true"', option=' mpr_tolerance="1"', flag="", more=""
    )
    (tmp_path / "old.xml").write_text(old)
    imported = import_mjcf(tmp_path / "old.xml")
    assert len(obsolete(imported)) == 2
    assert dict(imported.renamed)[" mpr_tolerance='1'"]


def test_a_second_file_of_that_name_does_not_get_its_text(tmp_path):
    for folder, text in (("a", '<mujoco><option apirate="1"/></mujoco>'), ("b", "<mujoco/>")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.xml").write_text(text)
    more = '<include file="a/same.xml"/><include file="b/same.xml"/>'
    with pytest.raises(DescriptionError, match=r"a/same\.xml:1.*the element without apirate"):
        import_mjcf(write(tmp_path / "old.xml", more=more))
