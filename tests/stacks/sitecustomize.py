"""On the path of every Python process that tests start: SIGUSR2 makes it tell the stack of each of its threads."""

import faulthandler
import signal

faulthandler.register(signal.SIGUSR2, all_threads=True)
