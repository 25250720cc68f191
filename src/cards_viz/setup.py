import xml.etree.ElementTree as ET
from pathlib import Path

from setuptools import find_packages, setup

PACKAGE = "cards_viz"
VERSION = ET.parse(Path(__file__).resolve().with_name("package.xml")).findtext("version")

setup(
    name=PACKAGE,
    version=VERSION,
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
    ],
    package_data={PACKAGE: ["py.typed", "workspace/*.html"]},
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},
    zip_safe=False,
    description=(
        "Views of robots with muscles or rods: browser, RViz markers, run plots, recordings."
    ),
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "browser_view = cards_viz.executables:browser_view",
            "gazebo_markers = cards_viz.executables:gazebo_markers",
            "muscle_markers = cards_viz.executables:muscle_markers",
            "rod_view = cards_viz.executables:rod_view",
        ],
    },
)
