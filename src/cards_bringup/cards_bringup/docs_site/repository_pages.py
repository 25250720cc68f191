"""Pages for files outside ``docs/`` that the documentation links to: sources, examples, READMEs.

On GitHub such a link opens the file. A site has only its own pages, so each linked file becomes
one: Markdown as it is, anything else as highlighted text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
"""A Markdown link to a file: what precedes the path, the path, an anchor and the parenthesis."""

FENCE = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1`*~* *$", re.MULTILINE | re.DOTALL)
"""A fenced code block."""

FOLDER = "repository"
"""Folder of these pages in the site."""

LANGUAGES = {".py": "python", ".sdf": "xml", ".yaml": "yaml", ".c": "c", ".h": "c"}
"""Language of a code block by the suffix of a file."""


def linked_files(top: Path) -> list[str]:
    """Return the files and folders outside ``docs/`` that pages link to, directly or not.

    Args:
        top: Top folder of the repository; the paths returned are relative to it.
    """
    found: dict[str, None] = {}
    to_read = [f"docs/{file.name}" for file in sorted((top / "docs").glob("*.md"))]
    to_read += ["examples/README.md"]
    found["examples/README.md"] = None
    while to_read:
        page = to_read.pop()
        for target in _targets((top / page).read_text(encoding="utf-8"), page):
            if target.startswith("docs/") or target in found or not (top / target).exists():
                continue
            found[target] = None
            if target.endswith(".md"):
                to_read.append(target)
    return sorted(found)


def page_of(target: str) -> str:
    """Return the path in the site of the page for a file of the repository."""
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    return f"{FOLDER}/{target}" if target.endswith(".md") else f"{FOLDER}/{target}.md"


def page_text(top: Path, target: str) -> str:
    """Return the Markdown of the page for a file or folder of the repository.

    Args:
        top: Top folder of the repository.
        target: Path relative to it.
    """
    path = top / target
    if path.is_dir():
        files = sorted(file.name for file in path.iterdir() if file.is_file())
        return f"# {target}\n\n" + "".join(f"- `{name}`\n" for name in files)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return with_site_links(text, target, top)
    if path.suffix == ".ipynb":
        return f"# {target}\n\n{_notebook(text)}"
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`{3,}", text)), default=0))
    return f"# {target}\n\n{fence}{LANGUAGES.get(path.suffix, '')}\n{text.rstrip()}\n{fence}\n"


def with_site_links(markdown: str, page: str, top: Path) -> str:
    """Return a page whose links to files of the repository lead to pages of the site.

    Args:
        markdown: The page.
        page: Its path in the repository, e.g. ``docs/python.md``.
        top: Top folder of the repository. Links to what does not exist stay, and MkDocs
            complains.
    """
    here = str(PurePosixPath(page_of(page)).parent)

    def replace(match: re.Match[str]) -> str:
        target = _resolved(match[2], page)
        if target is None or not (top / target).exists():
            return match[0]
        if target.startswith("docs/") and page.startswith("docs/"):
            return match[0]
        return match[1] + relpath(page_of(target), here) + match[3]

    return _outside_fences(markdown, lambda text: LINK.sub(replace, text))


def _outside_fences(markdown: str, change: Callable[[str], str]) -> str:
    out, end = [], 0
    for fence in FENCE.finditer(markdown):
        out += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*out, change(markdown[end:])])


def _targets(markdown: str, page: str) -> Iterator[str]:
    for match in LINK.finditer(FENCE.sub("", markdown)):
        target = _resolved(match[2], page)
        if target is not None:
            yield target


def _resolved(link: str, page: str) -> str | None:
    """Return the path in the repository that a link of a page leads to; None for a URL."""
    if re.match(r"[a-z]+:", link):
        return None
    return normpath(str(PurePosixPath(page).parent / link))


def _notebook(text: str) -> str:
    out = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        out.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
    return "\n\n".join(out) + "\n"
