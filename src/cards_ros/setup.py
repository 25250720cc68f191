from setuptools import find_packages, setup

PACKAGE = "cards_ros"

setup(
    name=PACKAGE,
    version="0.1.0",
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
        "The ROS interface shared by CARDS nodes: topic names, message packing, the "
        "control loop, diagnostics."
    ),
    license="Apache-2.0",
)
