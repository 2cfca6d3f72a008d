"""Three runs of one agent, side by side: ``make demo``, or ``PYTHONPATH=examples python -m demo``.

It needs no key, no network and no model. Exit status 0 if compacter finished the run.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import sys
import time
from pathlib import Path

import structlog
from rich.console import Console
from rich.live import Live

from .runs import make_runs
from .show import closing, opening, picture, plain, write_pictures
from .terminal import write_film
from .world import make_jobs


def main() -> int:
    """Run the demo; the exit status."""
    options = argparse.ArgumentParser(prog="demo", description=__doc__)
    options.add_argument("--steps", type=int, default=120, help="steps of the agent (120)")
    options.add_argument("--pace", type=float, default=0.05, help="seconds a step on a terminal")
    options.add_argument("--pictures", type=Path, help="write the pictures of the manual there")
    chosen = options.parse_args()
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # The picture tells what happens; log lines would tear it apart.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    jobs = make_jobs(chosen.steps)
    runs = make_runs(jobs)
    together = itertools.zip_longest(*(run.steps() for run in runs))
    console = Console()
    console.print(opening(jobs))
    if console.is_terminal and chosen.pictures is None:
        with Live(console=console, auto_refresh=False) as live:
            for _ in together:
                live.update(picture(runs, console.width), refresh=True)
                time.sleep(chosen.pace)
    else:
        for _ in together:
            pass
        print(plain(runs))
    console.print()
    console.print(closing(runs))
    if chosen.pictures is not None:
        write_pictures(runs, chosen.pictures)
        write_film(chosen.steps, chosen.pictures)
    return 0 if len(runs[-1].sizes) == chosen.steps else 1


if __name__ == "__main__":
    sys.exit(main())
