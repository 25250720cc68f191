import xml.etree.ElementTree as ET
from pathlib import Path

from setuptools import find_packages, setup

PACKAGE = "cards_hardware"
VERSION = ET.parse(Path(__file__).resolve().with_name("package.xml")).findtext("version")

setup(
    name=PACKAGE,
    version=VERSION,
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
    ],
    package_data={PACKAGE: ["py.typed", "boards/native/*.[ch]"]},
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},
    zip_safe=False,
    description="Bridge to real robots: protocol of the boards, lifecycle node, emulation.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "bridge = cards_hardware.executables:bridge",
        ],
    },
)
