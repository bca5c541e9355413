"""Floor 0: what fabrics exist, how a library is made to use one, and what counters say that it did."""
