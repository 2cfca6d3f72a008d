"""What must be kept letter by letter: paths, URLs, ids, code symbols, error codes, dates, amounts, names."""

from __future__ import annotations

import re

IDENTIFIER = re.compile(
    r"""
      https?://[^\s"'<>()\[\]{}|\\^`,;]+[\w/=&%#-]                    # URL
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+                                    # e-mail, user@host
    | (?:~|\.{1,2}|\b[A-Za-z]:|@?\w[\w.@+-]*)?(?:[/\\][\w.@+()\[\]-]*\w)+/?  # path
    | \b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b     # UUID
    | [$€£¥]\s?\d[\d.,]*[kKmMbB]?\b                                   # money
    | \b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?                   # date, time
    | \b\d+(?:[.,:]\d+)*\s?(?:%|ms|s|min|h|[kKMGT]i?B|[kM]?Hz|px|rps|USD|EUR|GBP|k|M)(?!\w)  # number with its unit
    | \b\w+(?:[._:-]\w+)+(?:\(\))?                                    # file.ext, snake_case, a-b, a.b, 1.2.3, a::b
    | \b\w*[a-z]\w*[A-Z]\w*                                           # camelCase
    | \b(?=\w*\d)(?=\w*[A-Za-z])\w{3,}                                # OBUT9V, r2d2
    | \b\d{3,}\b                                                      # 1957
    | \b[A-Z]{4,}\b                                                   # ENOENT
    """,
    re.VERBOSE,
)
"""One identifier, as it stands in a text."""
