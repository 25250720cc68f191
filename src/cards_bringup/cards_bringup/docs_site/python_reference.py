"""Pages of the Python API: docstrings and signatures, read from the sources by Griffe.

Nothing is imported. Docstrings are Google style; their text is taken as Markdown, where single and
double backticks are the same.
"""

from __future__ import annotations

import ast
import logging
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PACKAGES = ("cards", "cards_core")
"""Packages whose public names are the API."""

FRONT = "cards"
"""The package whose names are documented as they are imported: ``cards.load``."""


def python_pages(top: Path) -> dict[str, str]:
    """Return the pages by their names in the folder of the reference.

    Args:
        top: Top folder of the repository.
    """
    import griffe

    logging.getLogger("griffe").setLevel(logging.ERROR)
    loader = griffe.GriffeLoader(
        search_paths=[str(file.parent) for file in sorted(top.glob("src/*/setup.py"))],
        docstring_parser=griffe.Parser.google,
    )
    front, core = (loader.load(name, try_relative_path=False) for name in PACKAGES)
    for module in _front_names(front).values():  # some names come from other packages
        loader.load(module or FRONT, try_relative_path=False)
    loader.resolve_aliases(implicit=True)
    pages = {f"python/{FRONT}": _front_page(front)}
    packages = [module for module in _submodules(core) if module.is_init_module]
    for package in packages:
        pages[f"python/{package.name}"] = _package_page(package)
    single = [module for module in _submodules(core) if not module.is_init_module]
    pages["python/cards_core"] = _page("cards_core", _text(core), single)
    summaries = [("cards", front), ("cards_core", core)]
    summaries += [(package.name, package) for package in packages]
    rows = "".join(f"- [`{one.path}`]({name}.md): {_summary(one)}\n" for name, one in summaries)
    names = "\n".join(name for name, _ in summaries)
    pages["python/index"] = (
        "# Python API\n\nMade from the docstrings. How to use it: "
        "[CARDS from Python](../../python.md).\n\n"
        f"{rows}\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{names}\n```\n"
    )
    return pages


def _front_page(package: Any) -> str:
    """Return the page of the names that ``import cards`` offers."""
    out = [f"# {package.path}\n\n{_text(package)}\n"]
    for name in sorted(_front_names(package)):
        item = package.members[name]
        item = item.final_target if item.is_alias else item
        if item.is_module:
            out.append(f"\n## {package.path}.{name}\n\n{_text(item)}\n")
            out += [_entry(member, f"{package.path}.{name}") for member in _public(item)]
        else:
            out.append(_entry(item, package.path))
    return "\n".join(out)


def _front_names(package: Any) -> dict[str, str]:
    """Return the names that the package offers, with the module of each."""
    names: dict[str, str] = ast.literal_eval(str(package.members["_MODULES"].value))
    return names


def _package_page(package: Any) -> str:
    return _page(package.path, _text(package), _modules(package))


def _page(title: str, text: str, modules: Iterable[Any]) -> str:
    out = [f"# {title}\n\n{text}\n"]
    for module in modules:
        entries = [_entry(member, module.path) for member in _public(module)]
        if entries:
            out += [f"\n## {module.path}\n\n{_text(module)}\n", *entries]
    return "\n".join(out)


def _modules(package: Any) -> Iterator[Any]:
    for module in _submodules(package):
        yield module
        yield from _modules(module)


def _submodules(package: Any) -> list[Any]:
    members = sorted(package.members.items())
    found = [one for name, one in members if not name.startswith("_") and not one.is_alias]
    return [one for one in found if one.is_module]


def _public(item: Any) -> list[Any]:
    """Return the documented functions, properties and classes of a module or class, in order."""
    found = [
        member
        for name, member in item.members.items()
        if not name.startswith("_")
        and not member.is_alias
        and (member.is_function or member.is_class or "property" in member.labels)
        and member.docstring is not None
    ]
    return sorted(found, key=lambda member: member.lineno)


def _entry(item: Any, module: str) -> str:
    """Return the directive of a function, or of a class with its public methods."""
    kind = "class" if item.is_class else "function"
    body = _body(item)
    if item.is_class:
        for member in _public(item):
            body += "\n" + _member(member)
    return _directive(f"py:{kind}", f"{module}.{item.name}{_signature(item)}", body, 7)


def _member(member: Any) -> str:
    if "property" in member.labels:
        options = f":type: {_type(member.annotation)}\n" if member.annotation is not None else ""
        return _directive("py:property", member.name, options + "\n" + _body(member), 5)
    kind = "method"
    options = ""
    for label in ("classmethod", "staticmethod"):
        options += f":{label}:\n" if label in member.labels else ""
    return _directive(
        f"py:{kind}", member.name + _signature(member), options + "\n" + _body(member), 5
    )


def _directive(kind: str, head: str, body: str, ticks: int) -> str:
    fence = "`" * ticks
    return f"\n{fence}{{{kind}}} {head}\n{body.rstrip()}\n{fence}\n"


def _signature(item: Any) -> str:
    """Return parameters with annotations and defaults, and what a function returns."""
    parts, marked = [], False
    parameters = [p for p in item.parameters if p.name not in ("self", "cls")]
    for one in parameters:
        kind = one.kind.value if one.kind is not None else ""
        if kind == "keyword-only" and not marked:
            parts.append("*")
            marked = True
        marked = marked or kind == "variadic positional"
        stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        text = stars + one.name
        if one.annotation is not None:
            text += f": {_type(one.annotation)}"
        if one.default is not None and not stars:
            text += f" = {one.default}" if one.annotation is not None else f"={one.default}"
        parts.append(text)
    positional = [
        p for p in parameters if p.kind is not None and p.kind.value == "positional-only"
    ]
    if positional:
        parts.insert(len(positional), "/")
    out = f"({', '.join(parts)})"
    returns = getattr(item, "returns", None)
    if item.is_function and returns is not None:
        out += f" -> {_type(returns)}"
    return re.sub(r"\s+", " ", out)


def _type(annotation: Any) -> str:
    """Return an annotation whose names of this API are complete, for links to one place."""
    if isinstance(annotation, str):
        return annotation
    parts = []
    for part in annotation.iterate(flat=True):
        path = part if isinstance(part, str) else part.canonical_path
        parts.append(path if path.split(".")[0] in PACKAGES else str(part))
    return "".join(parts)


def _body(item: Any) -> str:
    """Return the docstring: its text, then its sections as fields."""
    out = ["\n"]
    fields: list[str] = []
    for section in item.docstring.parsed if item.docstring is not None else ():
        kind, value = section.kind.value, section.value
        if kind == "text":
            out.append(f"{_markdown(value)}\n\n")
        elif kind in ("parameters", "other parameters"):
            fields += [_field(f"param {one.name}", one.description) for one in value]
        elif kind == "attributes":
            fields += [_field(f"ivar {one.name}", one.description) for one in value]
        elif kind in ("raises", "warns"):
            fields += [_field(f"{kind} {one.annotation}", one.description) for one in value]
        elif kind in ("returns", "yields"):
            words = "; ".join(_line(one.description) for one in value)
            fields.append(_field(kind, words))
        elif kind == "admonition":
            title = section.title or value.kind
            out.append(f"**{title}** {_markdown(value.contents)}\n\n")
        elif kind == "examples":
            out += [f"```python\n{text}\n```\n\n" for _, text in value]
        else:
            raise AssertionError(f"{item.path}: section '{kind}' of the docstring has no form")
    return "".join([*out, *fields])


def _field(name: str, text: str) -> str:
    return f":{name}: {_line(text)}\n"


def _line(text: str) -> str:
    return _markdown(re.sub(r"\s+", " ", text))


def _text(item: Any) -> str:
    return "" if item.docstring is None else _markdown(item.docstring.value)


def _summary(item: Any) -> str:
    return _line(_text(item).split("\n\n")[0])


def _markdown(text: str) -> str:
    """Return the text of a docstring as Markdown.

    Stars, angle brackets and the like are meant as they are: equations and shapes use them.
    """
    lines = textwrap.dedent(text).replace("``", "`").splitlines()
    return "\n".join(_escaped(line) for line in lines)


def _escaped(line: str) -> str:
    if line.startswith("    "):
        return line  # code
    parts = line.split("`")
    if len(parts) % 2 == 0:
        return line
    out = []
    for i, part in enumerate(parts):
        out.append(part if i % 2 else re.sub(r"([*_<>\[\]{}$|])", r"\\\1", part))
    return "`".join(out)
