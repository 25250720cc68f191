import xml.etree.ElementTree as ET
from pathlib import Path

from setuptools import find_packages, setup

PACKAGE = "cards_model_compiler"
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
    description="Turns robots into native code, as a command and as a node that serves it.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "compile = cards_model_compiler.executables:compile",
            "live_analysis = cards_model_compiler.executables:live_analysis",
            "model_compiler = cards_model_compiler.executables:model_compiler",
        ],
    },
)
