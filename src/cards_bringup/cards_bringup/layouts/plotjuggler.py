"""A layout of PlotJuggler: all plots of a robot above each other, two columns of them.

An XML file. PlotJuggler names the numbers of a JointState ``TOPIC/ENTRY/FIELD``, others by the
path of their field.
"""

from __future__ import annotations

from xml.etree import ElementTree

from cards_bringup.layouts.content import Content, Curve, Plot

COLORS = (
    "#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#17becf", "#bcbd22",
)  # fmt: skip

_MOST_ROWS = 3


def plotjuggler_layout(content: Content) -> str:
    """Return the file's text."""
    root = ElementTree.Element("root")
    tabs = ElementTree.SubElement(
        root, "tabbed_widget", {"name": "Main Window", "parent": "main_window"}
    )
    tab = ElementTree.SubElement(tabs, "Tab", {"tab_name": content.robot, "containers": "1"})
    container = ElementTree.SubElement(tab, "Container")
    plots = content.plots
    columns = [plots[i : i + _MOST_ROWS] for i in range(0, len(plots), _MOST_ROWS)]
    row = _splitter(container, "|", len(columns))
    for column in columns:
        stack = _splitter(row, "-", len(column))
        for plot in column:
            _plot(stack, plot)
    ElementTree.SubElement(tabs, "currentTabIndex", {"index": "0"})
    ElementTree.SubElement(root, "use_relative_time_offset", {"enabled": "1"})
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def curve_name(curve: Curve) -> str:
    """Return the name that PlotJuggler gives a curve."""
    if curve.name:
        return f"{curve.topic}/{curve.name}/{curve.field}"
    return f"{curve.topic}/{curve.field.replace('.', '/')}"


def _splitter(parent: ElementTree.Element, orientation: str, count: int) -> ElementTree.Element:
    sizes = ";".join([f"{1.0 / count:.6f}"] * count)
    given = {"orientation": orientation, "count": str(count), "sizes": sizes}
    return ElementTree.SubElement(parent, "DockSplitter", given)


def _plot(parent: ElementTree.Element, plot: Plot) -> None:
    area = ElementTree.SubElement(parent, "DockArea", {"name": plot.title})
    kind = {"style": "Lines", "mode": "TimeSeries", "flip_x": "false", "flip_y": "false"}
    element = ElementTree.SubElement(area, "plot", kind)
    ElementTree.SubElement(element, "limitY")
    for number, curve in enumerate(plot.curves):
        color = COLORS[number % len(COLORS)]
        ElementTree.SubElement(element, "curve", {"name": curve_name(curve), "color": color})
