"""The main job on a real model: ``make demo``, or ``PYTHONPATH=examples python -m demo``."""
