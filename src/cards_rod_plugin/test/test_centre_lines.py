"""Lines in Gazebo's window: the bytes are a Marker_V, and nobody waits."""

import struct

import numpy as np
import pytest

from cards_rod_plugin.centre_lines import SERVICE, CentreLines, LineMarkers, clear_message
from cards_viz.gazebo import markers
from cards_viz.gazebo.markers import GazeboBindingsError

pytestmark = pytest.mark.serial


def fields(data):
    """Read a protobuf message without knowing its kind: [(number, value)]."""
    found, at = [], 0

    def varint(at):
        value = shift = 0
        while True:
            byte = data[at]
            value |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return value, at

    while at < len(data):
        key, at = varint(at)
        kind = key & 7
        if kind == 0:
            value, at = varint(at)
        elif kind == 2:
            size, at = varint(at)
            value, at = data[at : at + size], at + size
        else:
            size, code = {1: (8, "<d"), 5: (4, "<f")}[kind]
            value, at = struct.unpack(code, data[at : at + size])[0], at + size
        found.append((key >> 3, value))
    assert at == len(data)
    return found


def test_markers_have_the_points_that_were_given():
    rng = np.random.default_rng(3)
    message = LineMarkers("rods/left", 3, 51, (0.5, 0.25, 1.0))
    for lines in rng.normal(size=(2, 3, 51, 3)):
        markers = fields(message.bytes(lines))
        assert [number for number, _ in markers] == [2, 2, 2]
        for index, (line, (_, marker)) in enumerate(zip(lines, markers, strict=True), 1):
            inner = fields(marker)
            assert dict(inner)[3] == b"rods/left"
            assert (dict(inner)[4], dict(inner)[6]) == (index, 3)  # id, LINE_STRIP
            points = [dict(fields(value)) for number, value in inner if number == 11]
            assert np.array([[p[2], p[3], p[4]] for p in points]).tolist() == line.tolist()
            material = dict(fields(dict(inner)[10]))
            for part in (5, 6, 8):  # ambient, diffuse, emissive
                assert fields(material[part]) == [(2, 0.5), (3, 0.25), (4, 1.0), (5, 1.0)]


def test_gazebo_s_own_messages_read_the_same():
    try:
        marker_v = markers._bindings()[1]
    except GazeboBindingsError as error:
        pytest.skip(str(error))
    lines = np.random.default_rng(4).normal(size=(2, 7, 3))
    found = marker_v.FromString(LineMarkers("rods", 2, 7, (0.5, 0.25, 1.0)).bytes(lines))
    for index, (marker, line) in enumerate(zip(found.marker, lines, strict=True), 1):
        assert (marker.ns, marker.id, marker.type) == ("rods", index, marker.LINE_STRIP)
        assert [[p.x, p.y, p.z] for p in marker.point] == line.tolist()
        assert (marker.material.diffuse.g, marker.material.emissive.a) == (0.25, 1.0)
    (gone,) = marker_v.FromString(clear_message("rods")).marker
    assert (gone.ns, gone.action) == ("rods", gone.DELETE_ALL)


class Node:
    """Of gz-transport."""

    def __init__(self):
        self.services, self.sent = [], []

    def service_list(self):
        return self.services

    def request_raw(self, *arguments):
        self.sent.append(arguments)


def test_lines_are_sent_where_there_is_a_window_and_nobody_waits():
    node = Node()
    lines = CentreLines(node, "rods", 2, 5)
    shape = np.zeros((2, 5, 3))
    lines.look(0.0)
    lines.draw(shape)
    assert node.sent == []
    node.services = [SERVICE]
    lines.look(0.5)  # not yet looked again
    lines.draw(shape)
    assert node.sent == []
    lines.look(1.1)
    lines.draw(shape)
    (service, _, kind, _, timeout) = node.sent[0]
    assert (service, kind, timeout) == (SERVICE, "gz.msgs.Marker_V", 0)
    lines.close()
    assert dict(fields(dict(fields(node.sent[1][1]))[2]))[2] == 2  # DELETE_ALL


def test_without_transport_nothing_is_drawn():
    lines = CentreLines(None, "rods", 2, 5)
    lines.look(0.0)
    lines.draw(np.zeros((2, 5, 3)))
    lines.close()
    assert not lines.window
