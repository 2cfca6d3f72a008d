"""Choose what to compact, compact it, and check whether the result may be sent. Pure: nothing here
calls a model or has other side effects.
"""
