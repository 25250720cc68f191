"""Tensegrity robots whose cables touch, on hills and blocks: the same bytes again, flat memory."""

import dataclasses
import gc
import os

import numpy as np
import pytest

from cards_core.control import ControlModel, make_controller
from cards_core.formats import load
from cards_core.loop.host import SteppedHost
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.terrain import read_terrain
from cards_core.robot.terrain_place import on_terrain
from cards_sim.build import build_host, build_world_host

HILLS = "hills:friction=0.5"


def robot():
    """The tetrahedral complex of six vertebrae, whose cables touch."""
    plain = load("tetrahedral_6")
    muscles = tuple(dataclasses.replace(muscle, contact=True) for muscle in plain.muscles)
    return dataclasses.replace(plain, muscles=muscles)


ROBOT = robot()
MODEL = ControlModel(ROBOT, "numeric")


def gait():
    groups = {"inside": ["*saddle*"], "top": ["*outer_front*"]}
    return make_controller(
        "impedance",
        MODEL,
        gait="sine",
        amplitude=0.165,
        frequency=2.0,
        body_waves=1.0,
        inside_factor=-1.0,
        groups=groups,
    )


def played(host: SteppedHost, step, steps=400):
    """Return all states of a crawl as bytes."""
    controller = gait()
    rows = []
    for _ in range(steps):
        host.submit(controller.step(host.state))
        step()
        state = host.state
        values = (state.q, state.qd, state.tensions, state.actuators, state.contact_forces)
        rows.append(np.concatenate([np.ravel(value) for value in values]))
    return np.array(rows).tobytes()


@pytest.mark.parametrize("terrain", [HILLS, "blocks:count=500,friction=0.5"])
def test_a_crawl_repeats_to_the_last_bit(terrain):
    def host():
        return build_host(ParameterSet({"terrain": terrain}, "simulator"), ROBOT)

    one = host()
    first = played(one, one.step)
    one.reset()
    assert played(one, one.step) == first
    fresh = host()
    assert played(fresh, fresh.step) == first


def test_the_only_robot_of_a_world_is_the_robot_alone():
    alone = build_host(ParameterSet({"terrain": HILLS}, "simulator"), ROBOT)
    world = on_terrain(read_terrain(HILLS), ROBOT).with_robot(ROBOT)
    several = build_world_host(world)
    host = several.robots[ROBOT.name]
    assert played(host, several.step) == played(alone, alone.step)


def test_two_robots_of_a_process_do_not_disturb_each_other():
    """What the engine keeps from step to step belongs to one robot."""
    hosts = [build_host(ParameterSet({"terrain": HILLS}, "simulator"), ROBOT) for _ in range(2)]
    expected = played(hosts[0], hosts[0].step, 200)
    hosts[0].reset()
    controllers = [gait(), gait()]
    rows = []
    for _ in range(200):
        for host, controller in zip(hosts, controllers, strict=True):
            host.submit(controller.step(host.state))
            host.step()
        state = hosts[0].state
        values = (state.q, state.qd, state.tensions, state.actuators, state.contact_forces)
        rows.append(np.concatenate([np.ravel(value) for value in values]))
    assert np.array(rows).tobytes() == expected
    assert hosts[1].state.q.tobytes() == hosts[0].state.q.tobytes()


def resident():
    """Memory of this process, [bytes]."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc on this system")
def test_memory_of_a_crawl_over_hills_stays():
    """Less than 150 bytes in a step: a float of every cable would be more than that."""
    host = build_host(ParameterSet({"terrain": HILLS}, "simulator"), ROBOT)
    controller = gait()

    def crawl(steps):
        for _ in range(steps):
            host.submit(controller.step(host.state))
            host.step()
        gc.collect()
        return resident()

    before = crawl(1500)
    assert crawl(8000) - before < 8000 * 150
