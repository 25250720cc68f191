"""A robot of your own from SDF: a hanging rod that two cables turn, from nothing to control."""

import cards

CABLE = """<muscle name="{name}"><tension min="5" max="200"/>
  <via_point link="world">{x} 0 1.0</via_point>
  <via_point link="rod">0 0 -0.4</via_point></muscle>"""
SDF = """<sdf version="1.11"><model name="rod">
  <link name="rod"><pose relative_to="hinge"/>
    <inertial><pose>0 0 -0.25 0 0 0</pose><mass>1</mass>
      <inertia><ixx>0.021</ixx><iyy>0.021</iyy><izz>0.001</izz></inertia></inertial></link>
  <joint name="hinge" type="revolute"><pose relative_to="__model__">0 0 1 0 0 0</pose>
    <parent>world</parent><child>rod</child>
    <axis><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>1</upper></limit></axis></joint>
  <plugin filename="gz-sim-python-system-loader-system"
          name="gz::sim::systems::PythonSystemLoader">
    <module_name>cards_muscle_plugin.system</module_name>{muscles}</plugin>
</model></sdf>"""

muscles = CABLE.format(name="left", x=-0.3) + CABLE.format(name="right", x=0.3)
robot = cards.load(SDF.format(muscles=muscles))
sim = cards.Simulator(robot)


class Swing:
    """0.3 rad to either side, twice in 4 s, from rest to rest."""

    size, duration = 1, 4.0

    def __call__(self, t):
        from numpy import cos, pi, sin

        w, s = pi, sin(pi * t / 4) ** 2  # a window that begins and ends at rest
        ds, dds = pi / 4 * sin(pi * t / 2), pi**2 / 8 * cos(pi * t / 2)
        y = 0.3 * s * sin(w * t)
        yd = 0.3 * (ds * sin(w * t) + s * w * cos(w * t))
        ydd = 0.3 * (dds * sin(w * t) + 2 * ds * w * cos(w * t) - s * w * w * sin(w * t))
        return [y], [yd], [ydd]


run = cards.simulate(sim, cards.Controller("ctc_joint", robot, reference=Swing()), duration=4.0)
print(f"tracking error at most {abs(run['error']).max():.1e} rad")
