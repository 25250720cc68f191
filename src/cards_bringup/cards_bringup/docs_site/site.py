"""Build the site: stage the pages in a temporary folder, run Sphinx on it.

Sphinx reads Markdown with MyST. Every warning (a broken link or anchor, a page in no table of
contents, bad markup) is an error.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml

from cards_bringup.docs_site.command_reference import commands_page
from cards_bringup.docs_site.python_reference import python_pages
from cards_bringup.docs_site.repository_pages import (
    FOLDER,
    linked_files,
    page_of,
    page_text,
    with_site_links,
)
from cards_bringup.docs_site.ros_reference import ros_pages
from cards_core.errors import CardsError

CONTENTS = "contents.yaml"
"""File in ``docs/`` with the tables of contents: caption to pages."""

REFERENCE = "reference"
"""Folder of the generated pages in the site."""

SETTINGS: dict[str, object] = {
    "project": "CARDS",
    "copyright": "the CARDS authors",
    "html_title": "CARDS",
    "html_theme": "furo",
    "smartquotes": False,  # -- of an option stays as it is
    "html_show_sphinx": False,
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "extensions": ["myst_parser", "sphinx_copybutton"],
    "myst_enable_extensions": ["fieldlist"],
    "myst_heading_anchors": 6,
    "copybutton_exclude": ".linenos, .gp, .go, .c1",  # not the comments of shell commands
    "toc_object_entries": False,  # thousands of them: a build would take twice as long
    "maximum_signature_line_length": 80,
    "python_use_unqualified_type_names": True,
    "exclude_patterns": [],
}
"""Settings of Sphinx."""


def stage(top: Path, folder: Path) -> None:
    """Write the source of the site.

    Args:
        top: Top folder of the repository.
        folder: Receives Markdown and images; empty.

    Raises:
        CardsError: ``docs/contents.yaml`` is missing or wrong.
    """
    docs = top / "docs"
    for file in sorted(docs.glob("*.md")):
        text = file.read_text(encoding="utf-8")
        (folder / file.name).write_text(with_site_links(text, f"docs/{file.name}", top))
    shutil.copytree(docs / "images", folder / "images")
    pages = {page_of(target): page_text(top, target) for target in linked_files(top)}
    generated = {"commands": commands_page(), **ros_pages(top), **python_pages(top)}
    pages |= {f"{REFERENCE}/{name}.md": text for name, text in generated.items()}
    for name, text in pages.items():
        # reached by links; no table of contents has them
        orphan = "---\norphan: true\n---\n\n" if name.startswith(FOLDER) else ""
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(orphan + text, encoding="utf-8")
    with (folder / "index.md").open("a", encoding="utf-8") as index:
        index.write(_contents(docs / CONTENTS))


def build(top: Path, out: Path, progress: Callable[[str], None] = lambda _line: None) -> int:
    """Build the site; return how many pages it has.

    Args:
        top: Top folder of the repository.
        out: Folder of the site; replaced if it is the site of an earlier build.
        progress: Called with what is being done.

    Raises:
        CardsError: ``out`` holds other files; or Sphinx warned, and the message has its warnings.
    """
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    if out.exists() and any(out.iterdir()) and not (out / "objects.inv").is_file():
        raise CardsError(f"{out} holds other files (expected: a new folder, or an older site)")
    with tempfile.TemporaryDirectory(prefix="cards-docs-") as scratch:
        source, built = Path(scratch) / "source", Path(scratch) / "site"
        source.mkdir()
        progress("generating the reference")
        stage(top, source)
        progress("building")
        warnings = io.StringIO()
        with patch_docutils(), docutils_namespace():
            app = Sphinx(
                source,
                None,
                built,
                Path(scratch) / "doctrees",
                "html",
                confoverrides=SETTINGS,
                status=None,
                warning=warnings,
                warningiserror=True,
            )
            app.build(force_all=True)
        if app.statuscode or warnings.getvalue():
            text = warnings.getvalue().replace(f"{source}/", "")
            raise CardsError(f"the documentation has mistakes:\n{text.rstrip()}")
        if out.exists():
            shutil.rmtree(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(built, out)
        return len(app.env.found_docs)


def _contents(file: Path) -> str:
    """Return the tables of contents as directives of MyST, which the page does not show."""
    out = []
    for caption, pages in yaml.safe_load(file.read_text(encoding="utf-8")).items():
        options = f":hidden:\n:caption: {caption}\n:maxdepth: 1"
        out.append("\n```{toctree}\n" + options + "\n\n" + "\n".join(pages) + "\n```\n")
    return "".join(out)
