"""README.md and the manual are tests too: each Python block runs, a page's blocks in one
namespace.
"""

from __future__ import annotations

import os

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

# Set before anything imports litellm: it would fetch a price list otherwise.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

# No test speaks TLS. A client that reads no certificates is made in a hundredth of the time, and
# there are hundreds.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = os.devnull

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/clients/*.md", "docs/how-to/*.md"],
).pytest()
