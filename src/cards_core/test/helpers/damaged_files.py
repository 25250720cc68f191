"""Damaged copies of text and XML files, for tests of readers."""

from __future__ import annotations

import copy
import signal
import xml.etree.ElementTree as ET
from contextlib import contextmanager

import numpy as np

SECONDS = 20  # far more than any import of such a small model takes

NUMBERS = (
    "nan", "inf", "-inf", "1e308", "-1e308", "1e15", "1e-320", "-1", "0", "", "1 2 3 4 5 6 7",
    "0x10", "1_0", "١٢", "9" * 400, "one", "1,5", "2147483648", "1e5", "-0.0",
)  # fmt: skip
WORDS = (
    *(n for n in NUMBERS if len(n) < 400),
    "1", "2", "0.5", "1e-9", "true", "com", "joint", "relative", "R_X", "PLANAR_XY", "S_EULER_XYZ",
    "P_AXIS", "main", "other", "xyz", "a", "link 1", "world", "a::b", "__x__", "../../x", "é ü",
)  # fmt: skip
SNIPPETS = (
    "<", ">", "&", "&amp;", "&lol;", "<!--", "-->", "<![CDATA[", "]]>", "\x00", "\x0b", "\ufffe",
    "<a/>", "</links>", "<link_rigid/>", "<point/>", '"', "'", "<?xml version='1.0'?>", "é",
    "\U0001f980", '<!DOCTYPE a [<!ENTITY lol "lol">]>', "<cable_set/>", " " * 50, "\n",
    "<b:c xmlns:b='x'/>",
)  # fmt: skip


def mutate(rng: np.random.Generator, text: str) -> bytes:
    """Return a damaged copy of a file."""
    for _ in range(int(rng.integers(1, 4))):
        n = len(text)
        a, b = sorted(int(x) for x in rng.integers(0, n + 1, 2)) if n else (0, 0)
        b = min(b, a + int(rng.integers(1, 200)))
        match int(rng.integers(0, 9)):
            case 0:  # lose some text
                text = text[:a] + text[b:]
            case 1:  # the file ends early
                text = text[: max(a, n - int(rng.integers(1, n + 1)))]
            case 2:  # say it twice
                text = text[:b] + text[a:b] + text[b:]
            case 3:
                snippet = SNIPPETS[int(rng.integers(len(SNIPPETS)))]
                text = text[:a] + snippet + text[a:]
            case 4 | 5:  # another number
                text = _replace_word(rng, text)
            case 6:  # lose a line, or say it twice
                lines = text.split("\n")
                k = int(rng.integers(len(lines)))
                lines[k : k + 1] = [lines[k]] * int(2 * rng.integers(2))
                text = "\n".join(lines)
            case 7:  # swap two pieces
                c = min(n, b + (b - a))
                text = text[:a] + text[b:c] + text[a:b] + text[c:]
            case 8:  # another letter
                if n:
                    a = min(a, n - 1)
                    text = text[:a] + chr(int(rng.integers(32, 127))) + text[a + 1 :]
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if rng.random() < 0.15 and data:
        data[int(rng.integers(len(data)))] = int(rng.integers(256))
    return bytes(data)


def mutate_tree(rng: np.random.Generator, text: str) -> bytes:
    """Return a copy that is still XML, with other values, names or elements."""
    root = ET.fromstring(text)
    for _ in range(int(rng.integers(1, 3))):
        elements = list(root.iter())
        element = elements[int(rng.integers(len(elements)))]
        parents = [item for item in elements if element in list(item)]
        attributes = sorted(element.attrib)
        value = WORDS[int(rng.integers(len(WORDS)))]
        match int(rng.integers(0, 8)):
            case 0 | 1:
                words = (element.text or "").split() or [""]
                words[int(rng.integers(len(words)))] = value
                element.text = " ".join(words)
            case 2 | 3 if attributes:
                element.set(attributes[int(rng.integers(len(attributes)))], value)
            case 4 if attributes:
                del element.attrib[attributes[int(rng.integers(len(attributes)))]]
            case 5 if parents:
                parents[0].remove(element)
            case 6 if parents:
                parents[0].append(copy.deepcopy(element))
            case 7:
                element.tag = elements[int(rng.integers(len(elements)))].tag
    return ET.tostring(root)


def mutate_values(rng: np.random.Generator, text: str) -> bytes:
    """Return a copy with the elements of the original, and other numbers or words in one to three.

    What checks the names of elements lets these pass: they reach the readers behind it.
    """
    root = ET.fromstring(text)
    leaves = [item for item in root.iter() if (item.text or "").strip() and not len(item)]
    for index in rng.integers(len(leaves), size=int(rng.integers(1, 4))):
        words = (leaves[index].text or "").split() or [""]  # one may have been emptied before
        place = int(rng.integers(len(words)))
        try:
            scale = float(rng.choice([0.0, -1.0, 0.1, 1.5, 10.0, 1e6]))
            words[place] = f"{scale * float(words[place]):.6g}"
        except ValueError:
            words[place] = WORDS[int(rng.integers(len(WORDS)))]
        if rng.random() < 0.2:
            words[place] = NUMBERS[int(rng.integers(len(NUMBERS)))]
        leaves[index].text = " ".join(words)
    return ET.tostring(root)


def _replace_word(rng: np.random.Generator, text: str) -> str:
    places = [i for i, c in enumerate(text) if c.isdigit() and not text[i - 1].isalnum()]
    if not places:
        return text
    a = places[int(rng.integers(len(places)))]
    b = a
    while b < len(text) and (text[b].isalnum() or text[b] in ".-+"):
        b += 1
    return text[:a] + NUMBERS[int(rng.integers(len(NUMBERS)))] + text[b:]


@contextmanager
def time_limit(what: str):
    """Fail if the block takes much too much processor time."""

    def alarm(*_):
        raise AssertionError(f"hangs: {what}")

    before = signal.signal(signal.SIGPROF, alarm)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
