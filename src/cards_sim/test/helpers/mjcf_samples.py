"""MJCF files with what the importer reads, made for the tests."""

ARM = """<mujoco model="sample arm">
  <compiler angle="degree" eulerseq="zyx" meshdir="shapes" autolimits="true"/>
  <option gravity="0 0 -9.5"/>
  <default>
    <joint damping="0.3"/>
    <geom contype="1" conaffinity="1" friction="0.64 0.005 0.0001" rgba="0.2 0.4 0.6 1"/>
    <default class="bone">
      <geom type="capsule" size="0.03" density="800"/>
      <joint damping="0.1" range="-100 100"/>
    </default>
  </default>
  <asset>
    <mesh name="wedge" file="wedge.obj" scale="0.5 1 1"/>
    <material name="green" rgba="0 1 0 1"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" pos="0 0 -1"/>
    <site name="roof" pos="0.02 0.01 0.9"/>
    <site name="high" pos="-0.1 0.05 0.8"/>
    <site name="mark" pos="0.3 0 0" euler="0 0 20"/>
    <body name="base" pos="0 0 0.5" euler="10 0 0">
      <geom type="box" size="0.05 0.06 0.07" mass="2"/>
      <site name="base side" pos="0.2 0 0.03"/>
      <body name="upper" pos="0.01 0.02 0.03" quat="0.9 0.1 0.3 0.1" childclass="bone">
        <joint name="yaw" axis="0.1 0.2 1" pos="0.01 0 0.02"/>
        <joint name="pitch" axis="0 1 0" pos="0 0.01 0" ref="15"/>
        <joint name="lift" type="slide" axis="1 0 1" range="-0.2 0.3" ref="0.05"/>
        <geom name="humerus" fromto="0 0 0 0.3 0 0"/>
        <geom name="ball" type="sphere" pos="0.15 0.02 0" size="0.05" contype="0" conaffinity="0"/>
        <geom type="mesh" mesh="wedge" pos="0.1 0 0.1" mass="0.1" material="green"
              rgba="0.5 0.5 0.5 1"/>
        <site name="a" pos="0.02 0.04 0.08"/>
        <site name="b" pos="0.3 0.1 0.05"/>
        <site name="side of ball" pos="0.15 0.2 0.1"/>
        <body name="lower" pos="0.3 0 0" childclass="bone">
          <joint name="elbow" axis="0 0 1" range="-110 60" frictionloss="0.2"/>
          <geom name="ulna" fromto="0 0 0 0.25 0 0"/>
          <geom name="roll" type="cylinder" size="0.04 0.05" contype="0" conaffinity="0"/>
          <site name="c" pos="0.2 0.07 0.01"/>
          <site name="behind" pos="0.02 -0.2 0"/>
          <site name="within" pos="0 0 0.01"/>
          <body name="hand" pos="0.25 0 0">
            <joint name="wrist" type="ball" pos="0.01 0 0" damping="0" range="0 60"/>
            <inertial pos="0.05 0 0.01" mass="0.4" diaginertia="0.001 0.0012 0.0009"
                      euler="20 10 30"/>
            <site name="d" pos="0.06 0.02 0.02"/>
            <site name="tip" pos="0.1 0 0"/>
          </body>
        </body>
      </body>
    </body>
    <body name="crate" pos="1 0 1">
      <freejoint/>
      <geom type="box" size="0.1 0.1 0.1" mass="1"/>
      <site name="handle" pos="0 0 0.12"/>
    </body>
  </worldbody>
  <tendon>
    <spatial name="straight"><site site="roof"/><site site="a"/></spatial>
    <spatial name="over ball">
      <site site="high"/><geom geom="ball" sidesite="side of ball"/><site site="b"/>
      <site site="c"/>
    </spatial>
    <spatial name="over roll">
      <site site="b"/><geom geom="roll"/><site site="c"/><site site="d"/>
    </spatial>
    <spatial name="behind roll">
      <site site="b"/><geom geom="roll" sidesite="behind"/><site site="c"/>
    </spatial>
    <spatial name="through roll">
      <site site="a"/><geom geom="roll" sidesite="within"/><site site="c"/>
    </spatial>
    <spatial name="leash" stiffness="200" damping="1" springlength="0 0.8">
      <site site="roof"/><site site="handle"/>
    </spatial>
    <spatial name="hoist" limited="true" range="0 0.4">
      <site site="roof"/><site site="a"/><pulley divisor="2"/><site site="a"/><site site="b"/>
    </spatial>
    <spatial name="idle"><site site="roof"/><site site="tip"/></spatial>
    <fixed name="one"><joint joint="elbow" coef="0.03"/></fixed>
    <fixed name="two"><joint joint="elbow" coef="0.03"/><joint joint="yaw" coef="-1"/></fixed>
  </tendon>
  <equality>
    <joint joint1="lift" polycoef="0.1 0 0 0 0" active="false"/>
    <joint joint1="yaw" joint2="pitch" polycoef="0 1 0 0 0"/>
  </equality>
  <actuator>
    <motor name="pull" tendon="straight" gear="-2" ctrllimited="true" ctrlrange="5 150"/>
    <muscle name="biceps" tendon="over ball" force="500" range="0.5 1.5" lengthrange="0.3 0.6"
            timeconst="0.02 0.05"/>
    <muscle name="flexor" tendon="over roll" scale="300" range="0.5 1.5" lengthrange="0.2 0.5"/>
    <position name="cord" tendon="behind roll" kp="900" kv="7" ctrlrange="0 1"
              forcerange="-250 0"/>
    <general name="bore" tendon="through roll" gainprm="-1" ctrllimited="true" ctrlrange="-1 60"/>
    <motor name="shoulder" joint="yaw" gear="3" ctrllimited="true" ctrlrange="-2 2"/>
    <motor name="elbow drive" tendon="one" ctrllimited="true" ctrlrange="-10 10"/>
    <motor name="pair" tendon="two"/>
  </actuator>
  <keyframe>
    <key name="start" qpos="0.1 0.2 0.1 0.5 1 0 0 0 1 0 1.2 1 0 0 0"/>
    <key name="home" qpos="-0.1 0.3 0.05 0.4 0.9 0.1 0 0.1 1 0.1 1.1 1 0 0 0.2"
         ctrl="5 0 0 0.2 0 0 0 0"/>
  </keyframe>
</mujoco>
"""
"""Everything that is imported, and much that is named."""

WEDGE = """v 0 0 0
v 0.1 0 0
v 0 0.1 0
v 0 0 0.1
f 1 3 2
f 1 2 4
f 1 4 3
f 2 3 4
"""
"""A tetrahedron, OBJ."""


def write_arm(folder):
    """Write the sample and its mesh into a folder; return the path of the file."""
    (folder / "shapes").mkdir()
    (folder / "shapes" / "wedge.obj").write_text(WEDGE)
    path = folder / "arm.xml"
    path.write_text(ARM)
    return path
