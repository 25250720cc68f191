import xml.etree.ElementTree as ET
from pathlib import Path

from setuptools import find_packages, setup

PACKAGE = "cards_core"
VERSION = ET.parse(Path(__file__).resolve().with_name("package.xml")).findtext("version")

setup(
    name=PACKAGE,
    version=VERSION,
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
    ],
    package_data={
        PACKAGE: [
            "py.typed",
            "muscles/native/*.c",
            "optimize/native/*.c",
            "body_image/native/*.c",
            "codegen/*.c",
            "control/cpg/native/*.c",
            "control/native/*.c",
            "control/mrc/native/*.c",
            "embedded/native/*.*",
            "embedded/native/Makefile",
            "embedded/native/*/*",
            "estimation/native/*.c",
            "paths/contacts/native/*.c",
            "paths/wrapping/native/*.c",
            "analysis/native/*.c",
            "rods/native/*.c",
        ]
    },
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},
    zip_safe=False,
    description=(
        "Robot descriptions with muscles, kinematics, dynamics, muscle paths, "
        "trajectories and computed-torque control; no ROS."
    ),
    license="Apache-2.0",
)
