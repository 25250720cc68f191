"""Damaged CAD files: an error of ours that names the file, or a robot. Never a crash or a hang."""

import os
import zipfile

import numpy as np
import pytest

pytest.importorskip("OCP", reason="needs cadquery-ocp-novtk: ./cards setup --test")

from cad_samples import CONFIG, write_arm, write_arm_document

from cards_core.errors import DescriptionError
from cards_core.formats.cad import Reader, import_cad
from cards_core.formats.imports.model import write_imported

pytestmark = pytest.mark.serial

COUNT = int(os.environ.get("CARDS_FUZZ", "20"))
"""Damaged files of each kind."""

WORDS = (
    b"$", b"*", b"()", b"((((((((", b"))", b"''", b"'", b"#1", b"#0", b"#999999999", b"1.E308",
    b"-1.E-320", b"NAN", b"0.", b"-1", b";", b"/*", b"\\X2\\D83D\\X0\\", b"\x00", b"\xff\xfe",
    b"ENDSEC;", b"CLOSED_SHELL", b"PLANE", b".F.", b"&lt;", b"<", b"</Object>", b"&#0;", b"1e400",
)  # fmt: skip


def damaged(data, rng):
    """Return the data with something wrong."""
    out = bytearray(data)
    kind = rng.integers(7)
    if kind == 0:
        return bytes(out[: rng.integers(len(out))])
    for _ in range(rng.integers(1, 4)):
        a = int(rng.integers(len(out)))
        length = int(rng.integers(1, 60))
        if kind == 1:
            out[a] = int(rng.integers(256))
        elif kind == 2:
            del out[a : a + length]
        elif kind == 3:
            out[a:a] = WORDS[rng.integers(len(WORDS))]
        elif kind == 4:
            b = int(rng.integers(len(out)))
            out[a : a + length] = out[b : b + length]
        elif kind == 5:
            digits = [i for i in range(a, min(a + 400, len(out))) if chr(out[i]).isdigit()]
            if digits:
                out[digits[rng.integers(len(digits))]] = ord("0") + int(rng.integers(10))
        else:
            out[a : a + length] = WORDS[rng.integers(len(WORDS))]
    return bytes(out)


def damaged_document(source, target, rng):
    """Damage a file within a document, or the archive."""
    with zipfile.ZipFile(source) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    names = list(files)
    if rng.integers(5):
        name = "Document.xml" if rng.integers(2) else names[rng.integers(len(names))]
        files[name] = damaged(files[name], rng)
        if not rng.integers(8):
            del files[names[rng.integers(len(names))]]
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        target.write_bytes(damaged(source.read_bytes(), rng))


@pytest.fixture(scope="module")
def reader():
    with Reader(seconds=20, memory=1_500_000_000) as made:
        yield made


def outcome(file, config, reader, out):
    """Return True if a robot was made, False for an error of ours."""
    try:
        model = import_cad(file, config=config, assembly=reader.read(file))
        write_imported(model, out, force=True)
    except DescriptionError as error:
        text = str(error)
    else:
        return True
    assert text.startswith((str(file), str(config))), text
    assert "Traceback" not in text
    assert len(text) < 3000
    return False


@pytest.mark.parametrize("kind", ["step", "FCStd"])
def test_damaged_files(kind, tmp_path, reader):
    config = tmp_path / "arm.yaml"
    config.write_text(CONFIG)
    whole = tmp_path / f"whole.{kind}"
    (write_arm if kind == "step" else write_arm_document)(whole)
    file = tmp_path / f"damaged.{kind}"
    file.write_bytes(whole.read_bytes())
    assert outcome(file, config, reader, tmp_path / "out")
    rng = np.random.default_rng(20 if kind == "step" else 21)
    robots = 0
    for _ in range(COUNT):
        if kind == "step":
            file.write_bytes(damaged(whole.read_bytes(), rng))
        else:
            damaged_document(whole, file, rng)
        robots += outcome(file, config, reader, tmp_path / "out")
        # the folder of a robot is whole, and nothing else is left
        left = sorted(path.name for path in (tmp_path / "out").iterdir())
        assert all((tmp_path / "out" / name / "import_report.json").exists() for name in left)
    print(f"{kind}: {COUNT} damaged files, {robots} robots, {COUNT - robots} errors")
    assert 0 < robots < COUNT


def pack(file, name, megabytes):
    """Write an archive of one file of blanks."""
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w", force_zip64=True) as stream,
    ):
        for _ in range(megabytes):
            stream.write(b" " * 1_000_000)


def test_archive_that_unpacks_without_end(tmp_path, reader):
    file = tmp_path / "bomb.FCStd"
    pack(file, "Document.xml", 70)
    with pytest.raises(DescriptionError, match=r"bomb\.FCStd/Document.xml: .* bytes long"):
        reader.read(file)
    pack(file, "big.brp", 600)
    with pytest.raises(DescriptionError, match=r"bomb\.FCStd: its files hold 600000000 bytes"):
        reader.read(file)


def test_crash_hang_and_memory_are_errors(tmp_path, monkeypatch):
    """What a fork may do to itself, with a reader in Open CASCADE's place."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'cards_core.formats.cad.worker' in ' '.join(sys.orig_argv):\n"
        "    from cards_core.formats.cad import step\n"
        "    def read(path, shown, tolerance):\n"
        "        what = path.read_text()\n"
        "        if what == 'crash': os.abort()\n"
        "        if what == 'hang':\n"
        "            while True: pass\n"
        "        bytes(10**10)\n"
        "    step.read_step = read\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "x.step"
    with Reader(seconds=2, memory=500_000_000) as reader:
        for what, text in (
            ("crash", r"x\.step: Open CASCADE crashed while reading it \(SIGABRT\)"),
            ("hang", r"x\.step: reading it took longer than 2 s"),
            ("memory", r"x\.step: reading it takes too much memory"),
        ):
            file.write_text(what)
            with pytest.raises(DescriptionError, match=text):
                reader.read(file)
