"""The templates of the charts in examples/fleet, filled in without Helm.

``python -m tests.gateway.chart`` writes kubernetes.yaml and kubernetes-serve.yaml beside them, for
those who have no Helm.
The templates keep to what is read here: values by path, the release's name, and ``toYaml``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

FLEET = Path(__file__).parents[2] / "examples" / "fleet"
CHARTS = {
    "compacter-proxy": (FLEET / "chart", FLEET / "kubernetes.yaml"),
    "compacter-serve": (FLEET / "chart-serve", FLEET / "kubernetes-serve.yaml"),
}
"""Name of a release -> its chart, and the manifest that is written from it."""
_ACTION = re.compile(r"\{\{-? (toYaml )?\.([\w.]+)(?: \| nindent (\d+))? \}\}")
_HEAD = """\
# Written from the chart beside it: python -m tests.gateway.chart
# Which Secret (and ConfigMap) has to be there before, says the values.yaml of the chart.
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


def rendered(chart: Path, release: str) -> str:
    """Return all templates with the chart's own values, as ``helm template`` would."""
    values = yaml.safe_load((chart / "values.yaml").read_text())
    names = {"Values": values, "Release": {"Name": release}}
    templates = sorted((chart / "templates").glob("*.yaml"))
    return "---\n".join(fill(template.read_text(), names) for template in templates)


if __name__ == "__main__":
    for release, (folder, manifest) in CHARTS.items():
        manifest.write_text(_HEAD + rendered(folder, release))
