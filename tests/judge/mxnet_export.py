"""MXNet 1.9.1 loads dtrain's symbol and parameters with its own load_checkpoint and computes with them."""
import numpy
from _mxnet import mxnet

from _cases import judge_all, must, must_be_near, must_equal


def judge(case):
    if not case.has_symbol:
        return "is no network of MXNet's operators"
    symbol, arguments, auxiliary = mxnet.model.load_checkpoint(str(case.prefix), 1)
    stored = case.tensors()
    must(set(arguments) | set(auxiliary) == set(stored), "other arrays")
    for name, array in {**arguments, **auxiliary}.items():
        must_equal(array.asnumpy(), stored[name], name)
    must(set(symbol.list_arguments()) == set(arguments) | {"data", "softmax_label"}, "other arguments")
    must(set(symbol.list_auxiliary_states()) == set(auxiliary), "other auxiliary states")

    probabilities, logits = compute(symbol, arguments, auxiliary, case.images)
    expected = numpy.exp(case.logits - case.logits.max(axis=1, keepdims=True))
    must_be_near(probabilities, expected / expected.sum(axis=1, keepdims=True), "probabilities")
    return must_be_near(logits, case.logits, "logits")


def compute(symbol, arguments, auxiliary, images):
    """The network's output and what goes into its softmax."""
    both = mxnet.sym.Group([symbol, symbol.get_children()[0]])
    module = mxnet.mod.Module(both, data_names=["data"], label_names=["softmax_label"], context=mxnet.cpu())
    module.bind([("data", images.shape)], [("softmax_label", images.shape[:1])], for_training=False)
    module.set_params(arguments, auxiliary)
    module.forward(mxnet.io.DataBatch([mxnet.nd.array(images)], None), is_train=False)
    return [output.asnumpy() for output in module.get_outputs()]


judge_all(judge)
