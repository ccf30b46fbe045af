"""MXNet 1.9.1 loads dtrain's symbol and parameters with its own load_checkpoint and computes with them."""
import warnings

import numpy

numpy.bool = numpy.bool_  # MXNet still says numpy.bool, which numpy 1.24 took away
warnings.filterwarnings("ignore")
import mxnet  # noqa: E402  (after the line above)
from safetensors.numpy import load_file  # noqa: E402

from _cases import judge_all, must, must_be_near, must_equal  # noqa: E402


def judge(case):
    symbol, arguments, auxiliary = mxnet.model.load_checkpoint(str(case.prefix), 1)
    stored = load_file(case.path(".safetensors"))
    must(set(arguments) | set(auxiliary) == set(stored), "other arrays")
    for name, array in {**arguments, **auxiliary}.items():
        must_equal(array.asnumpy(), stored[name], name)
    must(set(symbol.list_arguments()) == set(arguments) | {"data", "softmax_label"}, "other arguments")
    must(set(symbol.list_auxiliary_states()) == set(auxiliary), "other auxiliary states")

    module = mxnet.mod.Module(symbol, data_names=["data"], label_names=["softmax_label"], context=mxnet.cpu())
    module.bind([("data", case.images.shape)], [("softmax_label", case.images.shape[:1])], for_training=False)
    module.set_params(arguments, auxiliary)
    module.forward(mxnet.io.DataBatch([mxnet.nd.array(case.images)], None), is_train=False)
    # The network's output is the softmax; of logits it keeps the differences.
    probabilities = module.get_outputs()[0].asnumpy().astype("float64")
    expected = numpy.exp(case.logits.astype("float64") - case.logits.max(axis=1, keepdims=True))
    return must_be_near(probabilities, expected / expected.sum(axis=1, keepdims=True), "probabilities")


judge_all(judge)
