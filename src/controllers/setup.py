import xml.etree.ElementTree as ET
from pathlib import Path

from setuptools import find_packages, setup

PACKAGE = "controllers"
VERSION = ET.parse(Path(__file__).resolve().with_name("package.xml")).findtext("version")

setup(
    name=PACKAGE,
    version=VERSION,
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
    ],
    package_data={PACKAGE: ["py.typed"]},
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},
    zip_safe=False,
    description=(
        "Controller nodes for muscle-driven robots: computed torque in joint space and in"
        " operational space, muscle relaxation; joint angles from muscle lengths."
    ),
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "ctc_joint = controllers.executables:ctc_joint",
            "impedance = controllers.executables:impedance",
            "cpg = controllers.executables:cpg",
            "mrc = controllers.executables:mrc",
            "joint_estimator = controllers.executables:joint_estimator",
            "trajectory_action = controllers.executables:trajectory_action",
            "ctc_operational = controllers.executables:ctc_operational",
        ],
    },
)
