"""Fuzz one reader with libFuzzer, guided by the coverage of our Python code; see README.md.

    python tests/fuzz/run.py PARSER [--runs N] [--seconds S] [--found FOLDER]

Ends with 0 if nothing was found; else with an error, and the input lies in the folder of findings.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src/cards_core/test/helpers")]

PACKAGES = (
    "cards_core", "cards_sim", "cards_hardware", "cards_learning", "cards_bringup", "cards_viz",
    "viser._messages", "viser.infra",
)  # fmt: skip
"""Whose branches guide the search."""

HANG = 30
"""Processor time that one input may take, [s]."""

MEMORY = 4096
"""Memory that the process may take, [MB]."""


def options(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="tests/fuzz/run.py",
        description="Fuzz a reader of files or messages, guided by coverage.",
        epilog="example: python tests/fuzz/run.py sdf --runs 1000000 --found /tmp/found",
    )
    parser.add_argument("parser", help="name of the reader, or 'list'")
    parser.add_argument("--runs", type=int, default=10_000, help="inputs (default 10000)")
    parser.add_argument("--seconds", type=int, default=0, help="at most so long (default: no end)")
    parser.add_argument("--seed", type=int, default=1, help="of the random numbers (default 1)")
    parser.add_argument("--found", type=Path, default=None,
                        help="where inputs that fail go, and new ones that reach new code "
                        "(default: a folder that is told)")  # fmt: skip
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Fuzz; does not return where it runs to the end: libFuzzer ends the process."""
    given = options(arguments)
    try:
        import atheris
    except ImportError:
        print("atheris is not installed (pip install -r requirements/fuzz.txt)", file=sys.stderr)
        return 2
    # within PyYAML for its own target alone: readers of YAML go three times as fast without
    packages = [*PACKAGES, "yaml"] if given.parser == "yaml" else list(PACKAGES)
    with atheris.instrument_imports(include=packages):
        from fuzz_parsers import PARSERS

        from mutation import mutated

        if given.parser == "list":
            print("\n".join(PARSERS))
            return 0
        if given.parser not in PARSERS:
            print(f"no reader '{given.parser}'; there are {', '.join(PARSERS)}", file=sys.stderr)
            return 2
        parser = PARSERS[given.parser]
        for seed in parser.seeds():  # imports what is imported on the way
            parser(seed.read_bytes())
    found = given.found or Path(tempfile.mkdtemp(prefix=f"cards-fuzz-{given.parser}-"))
    fresh = found / "corpus" / given.parser
    fresh.mkdir(parents=True, exist_ok=True)
    words = found / f"{given.parser}.dict"
    words.write_text("".join(f'"{_quoted(word)}"\n' for word in parser.words), encoding="ascii")
    print(f"findings go to {found}", file=sys.stderr, flush=True)
    command = [
        *(sys.argv[0], str(fresh), str(parser.seeds()[0].parent)),
        *(f"-runs={given.runs}", f"-max_total_time={given.seconds}", f"-seed={given.seed}"),
        *(f"-max_len={parser.longest}", f"-timeout={HANG}", f"-rss_limit_mb={MEMORY}"),
        *(f"-artifact_prefix={found}/{given.parser}-", "-print_final_stats=1", "-verbosity=1"),
        *([f"-dict={words}"] if parser.words else []),
    ]
    mutator = {}
    if parser.grammar:
        # atheris puts another Mutate in its place when it begins
        plain = lambda data, longest: atheris.Mutate(data, longest)  # noqa: E731
        mutator["custom_mutator"] = partial(mutated, parser.grammar, plain)
    atheris.Setup(command, lambda data: parser(bytes(data)) and None, **mutator)
    atheris.Fuzz()
    return 0


def _quoted(word: str) -> str:
    return "".join(c if c.isalnum() or c in " _-.:/" else f"\\x{ord(c):02x}" for c in word)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    sys.exit(main(sys.argv[1:]))
