"""The page of commands: every option of every command, from the parsers themselves."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from cards_bringup.cli import COMMANDS, exit_codes, make_parser
from cards_bringup.cli.analyse import KINDS
from cards_bringup.importers import IMPORTERS, import_parser
from cards_bringup.start import SETUP_USAGE


def commands_page() -> str:
    """Return the page with usage, options and examples of all commands."""
    out = [
        "# Commands\n\nMade from the parsers; `./cards COMMAND --help` says the same in a "
        "terminal.\n"
    ]
    out.append(f"\n## Exit codes\n\n```text\n{exit_codes()}\n```\n")
    for name, (module, summary) in COMMANDS.items():
        out.append(f"\n## {name}\n\n{summary[0].upper()}{summary[1:]}.\n")
        if module is None:
            out.append(f"\n```text\n{SETUP_USAGE.rstrip()}\n```\n")
            continue
        kinds: list[str | None] = [None, *(KINDS if name == "analyse" else ())]
        for kind in kinds:
            for words, parser in _parsers(make_parser(name, [kind] if kind else []), ()):
                if (kind is None) != (len(words) == 1):
                    continue
                if words != (name,):
                    out.append(f"\n### {' '.join(words)}\n")
                out.append(_parser_text(parser))
        if name == "import":
            for form in IMPORTERS:
                out.append(f"\n### import {form}\n{_parser_text(import_parser(form))}")
    return "".join(out)


def _parsers(
    parser: argparse.ArgumentParser, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Yield the parsers of a command and of its subcommands, each once, with their words."""
    if words:
        yield words, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            seen: set[int] = set()
            for word, below in action.choices.items():
                if id(below) not in seen:  # aliases come after the name
                    seen.add(id(below))
                    yield from _parsers(below, (*words, word))


def _parser_text(parser: argparse.ArgumentParser) -> str:
    out = []
    if parser.description:
        out.append(f"\n{_plain(parser.description)}\n")
    usage = parser.format_usage().removeprefix("usage: ").rstrip()
    out.append(f"\n```text\n{usage}\n```\n")
    rows = [_row(parser, action) for action in parser._actions if _shown(action)]
    if rows:
        out.append("\n| argument | meaning |\n|---|---|\n" + "".join(rows))
    if parser.epilog:
        out.append(f"\n```text\n{parser.epilog.rstrip()}\n```\n")
    return "".join(out)


def _shown(action: argparse.Action) -> bool:
    hidden = action.help == argparse.SUPPRESS or isinstance(action, argparse._HelpAction)
    return not hidden and not isinstance(action, argparse._SubParsersAction)


def _row(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = parser._get_formatter()
    name = formatter._format_action_invocation(action)
    text = formatter._expand_help(action) if action.help else ""
    if action.required and action.option_strings:
        text = f"{text} (required)"
    return f"| `{_cell(name)}` | {_plain(_cell(text))} |\n"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def _plain(text: str) -> str:
    """Return a help text as Markdown without markup."""
    return re.sub(r"([*_<>\[\]{}$])", r"\\\1", text)
