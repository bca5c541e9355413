"""What DPUs are beside their hosts: cores, memory and links, side by side, and what can hide behind them."""
