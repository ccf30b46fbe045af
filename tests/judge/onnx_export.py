"""onnx checks dtrain's models, onnxruntime computes with them; batches of other sizes work too."""
import json

import numpy
import onnx
import onnx.numpy_helper
import onnxruntime

from _cases import judge_all, must, must_be_near, must_equal


def judge(case):
    model = onnx.load(case.path(".onnx"))
    onnx.checker.check_model(model, full_check=True)
    must([entry.version for entry in model.opset_import] == [13], "another opset")
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    must(json.loads(metadata["preprocessing"]) == case.manifest["preprocessing"], "other preprocessing")
    judge_tensors(case, model)

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(str(case.path(".onnx")), options, providers=["CPUExecutionProvider"])
    (entry,) = session.get_inputs()
    must([entry.shape[0], *entry.shape[1:]] == ["n", *case.images.shape[1:]], f"input shape {entry.shape}")
    (logits,) = session.run(["logits"], {entry.name: case.images})
    (first,) = session.run(["logits"], {entry.name: case.images[:1]})
    must_be_near(first, logits[:1], "a batch of one")
    return must_be_near(logits, case.logits, "logits")


def judge_tensors(case, model):
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for name, tensor in case.tensors().items():
        must_equal(stored[name], numpy.ones_like(tensor) if name in case.fixed_gammas else tensor, name)


judge_all(judge, ["flat_and_back"])
