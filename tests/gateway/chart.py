"""The templates of examples/fleet/chart, filled in without Helm.

``python -m tests.gateway.chart`` writes examples/fleet/kubernetes.yaml, for those who have no Helm.
The templates keep to what is read here: values by path, the release's name, and ``toYaml``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

FLEET = Path(__file__).parents[2] / "examples" / "fleet"
CHART = FLEET / "chart"
_ACTION = re.compile(r"\{\{-? (toYaml )?\.([\w.]+)(?: \| nindent (\d+))? \}\}")
_HEAD = """\
# Written from the chart beside it: python -m tests.gateway.chart
# kubectl create configmap compacter-proxy --from-file=config.yaml
# kubectl create secret generic compacter-proxy --from-literal=LITELLM_MASTER_KEY=... \\
#   --from-literal=OPENAI_API_KEY=... --from-literal=REDIS_PASSWORD=... \\
#   --from-literal=REDIS_URL=redis://:...@compacter-proxy-redis:6379/0
"""


def fill(template: str, names: dict[str, Any]) -> str:
    """Return the template with each action replaced by its value."""

    def value_of(action: re.Match[str]) -> str:
        value: Any = names
        for name in action[2].split("."):
            value = value[name]
        if not action[1]:
            return str(value)
        indent = "\n" + " " * int(action[3])
        return indent + str(yaml.safe_dump(value)).rstrip().replace("\n", indent)

    text = _ACTION.sub(value_of, template)
    if "{{" in text:
        raise ValueError(f"an action that is not known: {text[text.index('{{') :][:80]}")
    return text


def rendered(release: str = "compacter-proxy") -> str:
    """Return all templates with the chart's own values, as ``helm template`` would."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    names = {"Values": values, "Release": {"Name": release}}
    templates = sorted((CHART / "templates").glob("*.yaml"))
    return "---\n".join(fill(template.read_text(), names) for template in templates)


if __name__ == "__main__":
    (FLEET / "kubernetes.yaml").write_text(_HEAD + rendered())
