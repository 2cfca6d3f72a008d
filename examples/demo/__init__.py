"""An agent at work in a window that is too small, three times: ``make demo``."""
