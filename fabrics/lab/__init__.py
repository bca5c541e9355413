"""The lab: an emulated cluster in Linux namespaces on one machine, without a daemon.

:mod:`fabrics.lab.cluster` makes and removes labs, :mod:`fabrics.lab.enter` runs a command in a lab host.
"""
