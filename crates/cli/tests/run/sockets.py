"""Calls of the socket API on SCTP sockets, as the program that `rexmit run` is tested with. Each function is a test; the
argument names it. It fails by an exception. Those that scripts/run-with-kernel names pass on a kernel with SCTP, too: what
is expected in them is what Linux does."""

import signal
import sys

from calls import engines, errnos, interrupted, one_to_many, one_to_one, options, paths, wildcards

# A call that hangs ends the program.
signal.alarm(30)
test = sys.argv[1]
MODULES = (one_to_one, options, errnos, interrupted, one_to_many, engines, paths, wildcards)
module = next(m for m in MODULES if hasattr(m, test))
getattr(module, test)()
