"""Record a run, read it back, compare it with another one, and make a film of it."""

import cards
from cards_core.errors import CardsError

robot = cards.load("planar_2r")
for name, gain in (("soft", 100.0), ("stiff", 900.0)):
    controller = cards.Controller(
        "ctc_joint", robot, reference="there_and_back", kp=[gain] * 2, kd=[2 * gain**0.5] * 2
    )
    cards.simulate(cards.Simulator(robot), controller, duration=4.0).save(name)

soft, stiff = cards.read_run("soft"), cards.read_run("stiff")
for row in cards.compare(soft, stiff).differences():
    print(row)
try:
    print(stiff.video("stiff.gif", size=(320, 240), rate=5.0), "pictures")
except CardsError as error:  # no OpenGL on this machine
    print("no film:", error)
# In the browser: cards.show(soft, stiff), or ./cards show soft stiff
