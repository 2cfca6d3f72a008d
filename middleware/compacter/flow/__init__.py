"""The policy: generators that yield effects and do no I/O, and the two drivers that run them."""
