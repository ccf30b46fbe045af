"""MXNet 1.9.1 says numpy.bool, which numpy 1.24 took away: put this folder in PYTHONPATH, and it imports."""

import numpy

numpy.bool = numpy.bool_
