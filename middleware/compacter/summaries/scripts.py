"""Which writing system a text is in."""

from __future__ import annotations

import re
from collections import Counter

_SCRIPTS: dict[str, re.Pattern[str]] = {
    "latin": re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]"),
    "cyrillic": re.compile(r"[\u0400-\u052f]"),
    "greek": re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]"),
    "arabic": re.compile(r"[\u0600-\u06ff\u0750-\u077f]"),
    "hebrew": re.compile(r"[\u0590-\u05ff]"),
    "indic": re.compile(r"[\u0900-\u0dff]"),
    "thai": re.compile(r"[\u0e00-\u0e7f]"),
    # Japanese writes Chinese characters too: one family, so that neither is taken for the other.
    "cjk": re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"),
    "hangul": re.compile(r"[\u1100-\u11ff\uac00-\ud7af]"),
}
_SAMPLE = 50_000


def count(text: str) -> Counter[str]:
    """Return the letters of each script in (the first 50,000 characters of) ``text``."""
    sample = text[:_SAMPLE]
    if sample.isascii():
        return Counter({"latin": sum(map(str.isalpha, sample))})
    return Counter({name: len(pattern.findall(sample)) for name, pattern in _SCRIPTS.items()})
