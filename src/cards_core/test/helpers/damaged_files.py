"""Damaged copies of text, XML and YAML files, for tests of readers."""

from __future__ import annotations

import copy
import signal
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import yaml

SECONDS = 20  # far more than any import of such a small model takes

NUMBERS = (
    "nan", "inf", "-inf", "1e308", "-1e308", "1e15", "1e-320", "-1", "0", "", "1 2 3 4 5 6 7",
    "0x10", "1_0", "١٢", "9" * 400, "one", "1,5", "2147483648", "1e5", "-0.0",
)  # fmt: skip
SCALES = (0.0, -1.0, 0.1, 1.5, 10.0, 1e6)
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
                text = text[: max(a, n - int(rng.integers(1, max(n, 1) + 1)))]
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
    places: list[tuple[ET.Element, str]] = []
    for item in root.iter():
        places += [(item, name) for name in sorted(item.attrib)]
        if (item.text or "").strip() and not len(item):
            places.append((item, ""))
    for index in rng.integers(len(places), size=int(rng.integers(1, 4))):
        item, name = places[index]
        # one may have been emptied before
        words = ((item.get(name) if name else item.text) or "").split() or [""]
        place = int(rng.integers(len(words)))
        try:
            scale = float(rng.choice(SCALES))
            words[place] = f"{scale * float(words[place]):.6g}"
        except ValueError:
            words[place] = WORDS[int(rng.integers(len(WORDS)))]
        if rng.random() < 0.2:
            words[place] = NUMBERS[int(rng.integers(len(NUMBERS)))]
        if name:
            item.set(name, " ".join(words))
        else:
            item.text = " ".join(words)
    return ET.tostring(root)


def mutate_yaml(rng: np.random.Generator, text: str) -> bytes:
    """Return a copy that is still YAML, with other values, keys or entries."""
    root = [yaml.safe_load(text)]
    for _ in range(int(rng.integers(1, 4))):
        places = list(_places(root))
        holder, key = places[int(rng.integers(len(places)))]
        other_holder, other_key = places[int(rng.integers(len(places)))]
        other = copy.deepcopy(other_holder[other_key])
        match int(rng.integers(0, 7)):
            case 0 | 1:
                holder[key] = _other_value(rng, holder[key])
            case 2:  # what stands elsewhere
                holder[key] = other
            case 3 if holder is not root:
                del holder[key]
            case 4 if isinstance(holder, list):  # say it twice, or more than it needs
                holder.insert(key, other if rng.random() < 0.5 else copy.deepcopy(holder[key]))
            case 4 if isinstance(holder, dict):
                holder[other_key if isinstance(other_key, str) else str(other)[:20]] = other
            case 5 if isinstance(holder, dict):  # by another name
                names = [k for h, k in places if isinstance(h, dict)]
                holder[names[int(rng.integers(len(names)))]] = holder.pop(key)
            case 6:
                holder[key] = [holder[key]] if rng.random() < 0.5 else {"a": holder[key]}
    return yaml.safe_dump(root[0], sort_keys=False, allow_unicode=True).encode()


def _places(holder: list[object] | dict[object, object]) -> Iterator[tuple[Any, Any]]:
    """Yield each value below, as what holds it and its key."""
    for key, value in list(enumerate(holder) if isinstance(holder, list) else holder.items()):
        yield holder, key
        if isinstance(value, list | dict):
            yield from _places(value)


def _other_value(rng: np.random.Generator, value: object) -> object:
    """Return another value of the same kind, mostly."""
    if isinstance(value, int | float) and rng.random() < 0.5:
        scale = float(rng.choice(SCALES))
        return type(value)(scale * value)
    if isinstance(value, str) and value.split() and rng.random() < 0.5:
        words = value.split()
        words[int(rng.integers(len(words)))] = WORDS[int(rng.integers(len(WORDS)))]
        return " ".join(words)
    odd = (None, True, "", [], {}, float("nan"), float("inf"), -1, 0, 1e308, 10**30, *WORDS)
    return odd[int(rng.integers(len(odd)))]


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
