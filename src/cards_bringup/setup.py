import xml.etree.ElementTree as ET
from pathlib import Path

from setuptools import find_packages, setup

PACKAGE = "cards_bringup"
VERSION = ET.parse(Path(__file__).resolve().with_name("package.xml")).findtext("version")
SHARED = ("launch", "config", "worlds", "models")  # links to the repository's top-level folders


def shared_files():
    """Return the files users edit, folder by folder, for share/cards_bringup."""
    out = {}
    for top in SHARED:
        for file in sorted(Path(top).rglob("*")):
            if (
                file.is_file()
                and "__pycache__" not in file.parts
                and not file.name.startswith(".")
            ):
                out.setdefault(f"share/{PACKAGE}/{file.parent.as_posix()}", []).append(str(file))
    return sorted(out.items())


setup(
    name=PACKAGE,
    version=VERSION,
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
        (f"share/{PACKAGE}/hooks", ["hooks/resource_path.dsv"]),
        *shared_files(),
    ],
    package_data={PACKAGE: ["py.typed"]},
    install_requires=["setuptools"],
    extras_require={"test": ["pytest"]},
    zip_safe=False,
    description="Launch files, node lists and the command line that bring CARDS robots up.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": ["gazebo_simulator = cards_bringup.executables:gazebo_simulator"],
    },
)
