"""The main job on a real model: ``make demo-model``."""
