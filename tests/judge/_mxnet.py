"""MXNet 1.9.1 made to run beside the other judges: `from _mxnet import mxnet`."""
import os
import warnings

import numpy

# Its fusion breaks type inference of a convolution that feeds a clip or is added to itself.
os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"
os.environ["MXNET_SUBGRAPH_VERBOSE"] = "0"
# It says numpy.bool, which numpy 1.24 took away; onnxruntime needs a newer numpy.
numpy.bool = numpy.bool_
warnings.filterwarnings("ignore", category=DeprecationWarning)

import mxnet  # noqa: E402,F401  (after the lines above)
