"""SDF texts shared by the tests."""

JOINTS = """<sdf version="1.10">
<model name="zoo" canonical_link="trunk">
  <pose>0.1 0.2 1.0 0 0 0.3</pose>
  <link name="trunk">
    <inertial><mass>4</mass><inertia><ixx>0.2</ixx><iyy>0.3</iyy><izz>0.25</izz></inertia></inertial>
    <visual name="v"><pose>0 0 0.1 0 0 0</pose><geometry><box><size>1 2 3</size></box></geometry>
      <material><diffuse>0.1 0.2 0.3 0.4</diffuse></material></visual>
    <collision name="c"><geometry><sphere><radius>0.1</radius></sphere></geometry>
      <surface><friction><ode><mu>0.6</mu></ode></friction></surface></collision>
    <sensor name="imu" type="imu"><always_on>1</always_on></sensor>
  </link>
  <joint name="hip" type="universal">
    <pose relative_to="trunk">0 0.1 -0.2 0 0 0</pose>
    <parent>trunk</parent><child>thigh</child>
    <axis><xyz>1 0 0</xyz><limit><lower>-1</lower><upper>1</upper></limit></axis>
    <axis2><xyz>0 1 0</xyz><limit><lower>-0.5</lower><upper>1e16</upper></limit></axis2>
  </joint>
  <link name="thigh"><pose relative_to="hip">0 0 -0.3 0 0 0</pose>
    <inertial><pose>0 0 0.1 0.3 0 0</pose><mass>2</mass>
      <inertia><ixx>0.02</ixx><ixy>0.001</ixy><iyy>0.03</iyy><izz>0.025</izz></inertia></inertial>
  </link>
  <joint name="knee" type="revolute">
    <pose relative_to="thigh">0 0 -0.3 0 0 0</pose>
    <parent>thigh</parent><child>shank_frame</child>
    <axis><xyz expressed_in="trunk">0 1 0</xyz>
      <limit><lower>-2</lower><upper>0.1</upper><effort>50</effort><velocity>8</velocity></limit>
      <dynamics><damping>0.5</damping><friction>0.2</friction></dynamics></axis>
  </joint>
  <link name="shank"><pose degrees="true" relative_to="thigh">0 0 -0.7 90 0 45</pose></link>
  <frame name="shank_frame" attached_to="shank"><pose>0 0 0.1 0 0 0</pose></frame>
  <joint name="ankle" type="ball">
    <pose relative_to="shank">0 0 -0.2 0 0 0</pose><parent>shank</parent><child>foot</child>
  </joint>
  <link name="foot">
    <pose relative_to="shank" rotation_format="quat_xyzw">0 0 -0.3 0 0 0.6 0.8</pose>
    <collision name="sole">
      <geometry><capsule><radius>0.02</radius><length>0.1</length></capsule></geometry>
    </collision>
  </link>
  <joint name="slide" type="prismatic"><parent>trunk</parent><child>head</child>
    <axis><xyz>0 0 2</xyz><limit><lower>0</lower><upper>0.2</upper></limit></axis></joint>
  <link name="head"><pose>0 0 0.5 0 0 0</pose></link>
  <joint name="glue" type="fixed"><parent>head</parent><child>hat</child></joint>
  <link name="hat"><pose relative_to="head">0 0 0.2 0 0 0</pose></link>
  <joint name="spin" type="continuous"><parent>hat</parent><child>propeller</child>
    <axis><xyz>0 0 1</xyz><limit><lower>-1</lower><upper>1</upper></limit></axis></joint>
  <link name="propeller"><pose relative_to="hat">0 0 0.1 0 0 0</pose></link>
  <frame name="toe" attached_to="foot"><pose relative_to="ankle">0.1 0 0 0 0 0</pose></frame>
  <plugin filename="gz-sim-python-system-loader-system"
          name="gz::sim::systems::PythonSystemLoader">
    <module_name>cards_muscle_plugin.system</module_name>
    <operational_frame>toe</operational_frame>
    <home joint="hip">0.1 -0.2</home>
    <home joint="ankle">0.8 0 0.6 0</home>
    <home joint="knee">-0.5</home>
    <motor joint="spin"/>
    <muscle name="quad" type="cable">
      <tension min="5" max="400"/>
      <via_point link="trunk">0.1 0 0</via_point>
      <via_point link="thigh">0.05 0 0</via_point>
      <via_point link="shank">0.04 0 0.1</via_point>
    </muscle>
    <muscle name="string">
      <tension min="0" max="20"/>
      <via_point link="world">0 0 2</via_point>
      <via_point link="head">0 0 0</via_point>
    </muscle>
  </plugin>
</model>
</sdf>
"""
"""One joint of each type, muscles, home, sensors; the trunk floats."""

NESTED = """<sdf version="1.11">
<model name="pair">
  <link name="frame"/>
  <joint name="post" type="fixed"><parent>world</parent><child>frame</child></joint>
  <model name="left" placement_frame="grip">
    <pose relative_to="frame">0 1 0.5 0 0 0.5</pose>
    <link name="a"><pose>0 0 0.1 0 0 0</pose></link>
    <model name="inner"><pose>0 0 0.2 0 0.1 0</pose>
      <link name="b"><pose>1 0 0 0 0 0</pose></link></model>
    <joint name="j" type="revolute"><parent>a</parent><child>inner::b</child>
      <axis><xyz>1 1 0</xyz></axis></joint>
    <frame name="grip" attached_to="a"><pose>0.3 0 0 0 0 0</pose></frame>
    <plugin filename="gz-sim-python-system-loader-system"
            name="gz::sim::systems::PythonSystemLoader">
      <module_name>cards_muscle_plugin.system</module_name>
      <home joint="j">0.25</home>
      <muscle name="m"><tension min="1" max="2"/>
        <via_point link="a">0 0 0</via_point><via_point link="inner::b">0 0 0.1</via_point>
      </muscle>
    </plugin>
  </model>
  <joint name="hold" type="prismatic"><parent>frame</parent><child>left::grip</child>
    <axis><xyz expressed_in="left::inner">0 0 1</xyz></axis></joint>
</model>
</sdf>
"""
"""Nested models with a placement frame, joints across models, a muscle block inside."""

WORLD = """<sdf version="1.9">
<world name="lab">
  <gravity>0 0 -1.62</gravity>
  <physics name="p" type="ode"><max_step_size>0.001</max_step_size></physics>
  <light name="sun" type="directional"><direction>0 0 -1</direction></light>
  <frame name="bench"><pose>2 0 1 0 0 0</pose></frame>
  <model name="floor"><static>true</static><link name="plane">
    <collision name="c">
      <geometry><plane><normal>0 0 1</normal><size>10 10</size></plane></geometry>
    </collision></link></model>
  <model name="arm"><pose relative_to="bench">0 0 0.1 0 0 0</pose>
    <link name="base"/><link name="rod"><pose>0 0 0.2 0 0 0</pose></link>
    <joint name="turn" type="revolute"><parent>base</parent><child>rod</child>
      <axis><xyz>0 1 0</xyz></axis></joint>
  </model>
  <joint name="bolt" type="fixed"><parent>world</parent><child>arm::base</child></joint>
</world>
</sdf>
"""
"""A world with gravity of the moon, a floor, and an arm bolted to a bench."""


MUSCLES = """<sdf version="1.11">
<model name="muscles">
  <link name="torso"/>
  <joint name="seat" type="fixed"><parent>world</parent><child>torso</child></joint>
  <link name="upper"><pose>0 0 0.5 0 0 0</pose></link>
  <joint name="shoulder" type="ball"><parent>torso</parent><child>upper</child></joint>
  <link name="lower"><pose>0 0 0.2 0 0 0</pose></link>
  <joint name="elbow" type="revolute"><parent>upper</parent><child>lower</child>
    <axis><xyz>0 1 0</xyz><dynamics><damping>0.1</damping></dynamics></axis></joint>
  <plugin filename="gz-sim-python-system-loader-system"
          name="gz::sim::systems::PythonSystemLoader">
    <module_name>cards_muscle_plugin.system</module_name>
    <wrap_surface name="trochlea" link="upper" pose="0 0 -0.3 1.5708 0 0">
      <cylinder radius="0.02" length="0.1"/></wrap_surface>
    <wrap_surface name="head" link="upper" pose="0 0.02 0 0 0 0"><sphere radius="0.03"/>
    </wrap_surface>
    <wrap_surface name="ribs" link="torso"><ellipsoid radii="0.05 0.06 0.1"/></wrap_surface>
    <wrap_surface name="ring" link="lower" pose="0.05 0 0.1 0 1.5708 0">
      <torus radius="0.03" tube_radius="0.01"/></wrap_surface>
    <muscle name="biceps" type="hill" friction_speed="0.02">
      <tension min="0" max="900"/>
      <parameters max_isometric_force="900" optimal_fiber_length="0.1" tendon_slack_length="0.2"/>
      <via_point link="torso">0.1 0.02 0.35</via_point>
      <via_point link="torso" friction="0.05">0.1 0.02 0.31</via_point>
      <wrap surface="head" friction="0.1"/>
      <wrap surface="trochlea" side="0.1 0 -0.3"/>
      <via_point link="lower">0.06 0 0.1</via_point>
    </muscle>
    <muscle name="triceps" type="series_elastic">
      <tension min="5" max="400"/>
      <parameters spool_radius="0.005">
        <spring law="polynomial" stiffness="3e4" cubic="1e6"/><motor voltage="12"/><thermal/>
      </parameters>
      <via_point link="torso">-0.1 0 0.3</via_point>
      <wrap surface="ribs"/>
      <via_point link="lower">-0.05 0 0.1</via_point>
    </muscle>
    <muscle name="flexor" type="pneumatic">
      <tension min="0" max="500"/>
      <parameters thread_length="0.3" turns="2" rest_length="0.27"><valve/></parameters>
      <via_point link="upper">0.05 0 0</via_point>
      <wrap surface="ring" inside="true"/>
      <via_point link="lower">0.1 0 0.3</via_point>
    </muscle>
    <muscle name="hoist">
      <tension min="1" max="200"/>
      <parameters stiffness="1e5" damping="10"/>
      <pulley link="world" axis="0 0 1" radius="0.03">1 0 2</pulley>
      <via_point link="lower">0 0 0.2</via_point>
    </muscle>
    <muscle name="band" type="ligament">
      <parameters stiffness="1000" slack_length="0.2"/>
      <via_point link="upper">0 0 -0.1</via_point>
      <via_point link="lower">0 0 0.1</via_point>
    </muscle>
  </plugin>
</model>
</sdf>
"""
"""Every type of muscle and every element of a path."""


def link(name="a", inside=""):
    return f'<link name="{name}">{inside}</link>'


def model(inside, *, name="m", version="1.11", attributes=""):
    return f'<sdf version="{version}"><model name="{name}"{attributes}>{inside}</model></sdf>'


PLUGIN = (
    '<plugin filename="gz-sim-python-system-loader-system" '
    'name="gz::sim::systems::PythonSystemLoader">'
    "<module_name>cards_muscle_plugin.system</module_name>{}</plugin>"
)


def block(inside):
    return PLUGIN.format(inside)
