"""What is compacted, how, and whether the result may be sent. Pure: nothing here calls a model or
touches the world.
"""
