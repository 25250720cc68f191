"""The packages as colcon and ROS see them."""

import ast
import configparser
import functools
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

TOP = Path(__file__).resolve().parents[3]
PACKAGES = sorted(file.parent for file in TOP.glob("src/*/package.xml"))
NAMES = {folder.name for folder in PACKAGES}
EXPECTED = {
    "cards",
    "cards_core",
    "cards_ros",
    "cards_sim",
    "cards_muscle_plugin",
    "cards_model_compiler",
    "cards_hardware",
    "cards_learning",
    "cards_rods",
    "cards_rod_plugin",
    "controllers",
    "cards_viz",
    "cards_bringup",
}
EXECUTABLES = {
    "cards_sim": {"simulator"},
    "cards_model_compiler": {"compile", "live_analysis", "model_compiler"},
    "cards_hardware": {"bridge"},
    "cards_rods": {"rod_solver"},
    "controllers": {"cpg", "ctc_joint", "ctc_operational", "impedance", "mrc"},
    "cards_viz": {"browser_view", "gazebo_markers", "muscle_markers", "rod_view"},
    "cards_bringup": {"gazebo_simulator"},
}
ROS_PACKAGES = {
    "rclpy",
    "rcl_interfaces",
    "builtin_interfaces",
    "diagnostic_msgs",
    "geometry_msgs",
    "lifecycle_msgs",
    "rosgraph_msgs",
    "sensor_msgs",
    "std_msgs",
    "std_srvs",
    "trajectory_msgs",
    "visualization_msgs",
    "launch",
    "launch_ros",
    "ament_index_python",
}


@pytest.fixture(params=PACKAGES, ids=lambda folder: folder.name)
def package(request):
    return request.param


@functools.cache
def setup_arguments(package):
    """Run setup.py with `setup` replaced, and return what it was called with.

    In a process of its own: setuptools puts its own distutils in place, and refuses where
    somebody has imported Python's.
    """
    script = (
        "import json, runpy, setuptools\n"
        "setuptools.setup = lambda **arguments: print(json.dumps(arguments))\n"
        "runpy.run_path('setup.py', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=package, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def files_of(package):
    """Return all files of a package's code; `Path.rglob` passes links to folders by."""
    found = [
        Path(folder, name)
        for folder, _, names in os.walk(package / package.name, followlinks=True)
        for name in names
    ]
    return [file for file in found if "__pycache__" not in file.parts]


def dependencies(package):
    root = ET.parse(package / "package.xml").getroot()
    return {e.text for e in root if e.tag in ("depend", "exec_depend")}


def test_all_packages_are_there():
    assert EXPECTED <= NAMES


def test_manifest_is_valid(package):
    catkin_package = pytest.importorskip("catkin_pkg.package")
    warnings = []
    manifest = catkin_package.parse_package(str(package), warnings=warnings)
    manifest.validate(warnings=warnings)
    assert warnings == []
    assert manifest.name == package.name
    assert manifest.package_format == 3
    assert manifest.licenses == ["Apache-2.0"]
    assert manifest.get_build_type() == "ament_python"


def test_version_is_the_same_everywhere(package):
    from cards_core import __version__

    manifest = ET.parse(package / "package.xml").getroot()
    assert manifest.findtext("version") == __version__
    assert setup_arguments(package)["version"] == __version__
    description = " ".join((manifest.findtext("description") or "").split())
    assert setup_arguments(package)["description"] == description


def test_the_citation_has_the_version():
    from cards_core import __version__

    citation = yaml.safe_load((TOP / "CITATION.cff").read_text())
    assert citation["version"] == __version__


def test_programs_go_where_ros2_run_looks(package):
    config = configparser.ConfigParser()
    config.read(package / "setup.cfg")
    assert config["develop"]["script_dir"] == f"$base/lib/{package.name}"
    assert config["install"]["install_scripts"] == f"$base/lib/{package.name}"


def test_marker_and_manifest_are_installed(package):
    data = dict(setup_arguments(package)["data_files"])
    marker = f"resource/{package.name}"
    assert data["share/ament_index/resource_index/packages"] == [marker]
    assert (package / marker).is_file()
    assert "package.xml" in data[f"share/{package.name}"]


def test_every_module_and_data_file_is_installed(package):
    arguments = setup_arguments(package)
    code = package / package.name
    files = files_of(package)
    folders = {file.parent for file in files if file.suffix == ".py"}
    found = {".".join(folder.relative_to(package).parts) for folder in folders}
    assert found == set(arguments["packages"])
    for folder in folders:
        assert (folder / "__init__.py").is_file(), f"{folder} is not a package"
    patterns = arguments["package_data"][package.name]
    matched = {file for pattern in patterns for file in code.glob(pattern)}
    others = {file for file in files if file.suffix != ".py"}
    assert others == matched
    assert code / "py.typed" in matched


def main_of(package, name):
    """Return the module that an executable imports; its file must import nothing else of ours."""
    tree = ast.parse((package / package.name / "executables.py").read_text())
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert set(imported) <= {"cards_core.executable", "cards_core.exit_codes"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    (module,) = (
        node.value.args[0].value
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == name
    )
    return module


def test_executables_lead_to_a_main(package):
    arguments = setup_arguments(package)
    scripts = arguments.get("entry_points", {}).get("console_scripts", [])
    names = set()
    for script in scripts:
        name, target = (part.strip() for part in script.split("="))
        module, _, function = target.partition(":")
        assert (module, function) == (f"{package.name}.executables", name)
        names.add(name)
        text = (package / f"{main_of(package, name).replace('.', '/')}.py").read_text()
        tree = ast.parse(text)
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        imported = {
            alias.asname or alias.name
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        assert "main" in defined | imported
    assert EXECUTABLES.get(package.name, set()) <= names


def test_node_lists_start_what_is_installed():
    """``./cards`` runs modules, ``ros2 launch`` executables: they must be the same."""
    from cards_bringup.nodes import node_list

    checked = 0
    for file in sorted((TOP / "config").glob(f"*{node_list.SUFFIX}")):
        for node in node_list.read_file(file).nodes:
            if node.package in NAMES:
                arguments = setup_arguments(TOP / "src" / node.package)
                scripts = arguments["entry_points"]["console_scripts"]
                name = node.executable
                assert f"{name} = {node.package}.executables:{name}" in scripts
                assert main_of(TOP / "src" / node.package, name) == node.module
                checked += 1
    assert checked >= 8


def test_what_is_imported_is_declared(package):
    declared = dependencies(package)
    for file in (file for file in files_of(package) if file.suffix == ".py"):
        for node in ast.walk(ast.parse(file.read_text())):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                modules = [node.module]
            for module in modules:
                top = module.split(".")[0]
                if top in (NAMES | ROS_PACKAGES) - {package.name}:
                    assert top in declared, f"{file} imports {module}, package.xml lacks {top}"


def test_what_is_declared_exists(package):
    for name in dependencies(package):
        known = name in NAMES | ROS_PACKAGES | {"ros2launch"} or name.startswith("python3-")
        assert known, f"{package.name} depends on {name}"


def test_files_for_users_are_installed():
    data = dict(setup_arguments(TOP / "src" / "cards_bringup")["data_files"])
    assert "launch/roboy_arm.launch.py" in data["share/cards_bringup/launch"]
    assert "config/roboy_arm.nodes.yaml" in data["share/cards_bringup/config"]
    assert "config/roboy_arm.yaml" in data["share/cards_bringup/config"]
    assert "models/roboy_arm/model.sdf" in data["share/cards_bringup/models/roboy_arm"]
    for world in ("empty", "table", "two_arms"):
        assert f"worlds/{world}.sdf" in data["share/cards_bringup/worlds"]


def test_models_and_worlds_reach_gazebo_through_a_hook():
    meta = json.loads((TOP / "colcon.meta").read_text())
    (hook,) = meta["names"]["cards_bringup"]["hooks"]
    file = TOP / "src" / "cards_bringup" / Path(hook).relative_to("share/cards_bringup")
    lines = [line.split(";") for line in file.read_text().splitlines()]
    assert {tuple(line[:2]) for line in lines} == {
        ("prepend-non-duplicate", "GZ_SIM_RESOURCE_PATH")
    }
    assert {line[2] for line in lines} == {
        "share/cards_bringup/models",
        "share/cards_bringup/worlds",
    }


def test_no_private_settings_in_the_repository():
    """Indexes and absolute paths belong to a machine, not to the project."""
    pattern = re.compile(r"index-url\s*[= ]|find-links\s*[= ]|file:///|/home/|/root/")
    for folder in ("requirements", "config", "launch", "models", "worlds"):
        for file in sorted((TOP / folder).rglob("*")):
            if file.is_file() and file.suffix in (".txt", ".yaml", ".py", ".sdf", ".config"):
                assert not pattern.search(file.read_text()), file


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="not in a virtual environment")
def test_required_versions_are_the_installed_ones():
    import importlib.metadata

    from cards_bringup.bootstrap.install import pinned

    different = {}
    for name, version in pinned(TOP / "requirements" / "runtime.txt").items():
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            installed = "missing"
        if installed != version:
            different[name] = (version, installed)
    different.pop("setuptools", None)
    assert different == {}
