"""Weights of a Mask R-CNN with TensorPack's names and layouts become those of the network.

The names are those of tensorpack/examples/FasterRCNN (modeling/model_fpn.py, model_rpn.py, model_frcnn.py, model_mrcnn.py,
backbone.py). TensorPack itself needs TensorFlow 1 and does not run here: what its layers compute is not compared.
"""
import os
import pathlib
import subprocess
import tempfile

import numpy as np
from safetensors.numpy import load_file

from _cases import end, must, must_equal

DTRAIN = os.environ["DTRAIN"]
NETWORK = ["--network", "mask-rcnn", "--backbone", "resnet-18", "--proposals", "16", "--image-shape", "3,64,64"]
PARTS = {"rpn.head.conv.0.0": "rpn/conv0", "rpn.head.cls_logits": "rpn/class", "rpn.head.bbox_pred": "rpn/box",
         "roi_heads.box_head.fc6": "fastrcnn/fc6", "roi_heads.box_head.fc7": "fastrcnn/fc7",
         "roi_heads.box_predictor.cls_score": "fastrcnn/outputs/class", "roi_heads.box_predictor.bbox_pred": "fastrcnn/outputs/box",
         "roi_heads.mask_predictor.conv5_mask": "maskrcnn/deconv", "roi_heads.mask_predictor.mask_fcn_logits": "maskrcnn/conv",
         **{f"backbone.fpn.inner_blocks.{k}.0": f"fpn/lateral_1x1_c{k + 2}" for k in range(4)},
         **{f"backbone.fpn.layer_blocks.{k}.0": f"fpn/posthoc_3x3_p{k + 2}" for k in range(4)},
         **{f"roi_heads.mask_head.{k}.0": f"maskrcnn/fcn{k}" for k in range(4)}}
ENDINGS = {"weight": "W", "bias": "b", "gamma": "gamma", "beta": "beta", "moving_mean": "mean/EMA", "moving_var": "variance/EMA"}


def dtrain(*words):
    done = subprocess.run([DTRAIN, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"dtrain {words[0]}: {done.stderr.strip()}")
    return done.stdout


def backbone_name(layer):
    """layer2.0.bn1 -> group1/block0/conv1/bn"""
    if layer == "conv1":
        return "conv0"
    if layer == "bn1":
        return "conv0/bn"
    group, block, part, *rest = layer.split(".")
    part = {"downsample": "convshortcut" + ("/bn" if rest == ["1"] else "")}.get(part, part.replace("bn", "conv") + "/bn" * part.startswith("bn"))
    return f"group{int(group.removeprefix('layer')) - 1}/block{block}/{part}"


def as_tensorpack_has_it(name, tensor):
    kind = next(each for each in ENDINGS if name.endswith(f"_{each}"))
    layer = name.removesuffix(f"_{kind}")
    theirs = PARTS.get(layer) or backbone_name(layer.removeprefix("backbone.body."))
    if layer == "backbone.body.conv1":
        tensor = tensor[:, ::-1]  # blue, green, red
    if theirs == "maskrcnn/conv":
        tensor = tensor[1:]  # no background
    if tensor.ndim == 4:
        tensor = tensor.transpose(2, 3, 1, 0)
    if tensor.ndim == 2:
        tensor = tensor.T
    return f"{theirs}/{ENDINGS[kind]}:0", np.ascontiguousarray(tensor)


def judge(folder):
    dtrain("data", "prepare", "shapes-detection", "--out", folder / "d", "--train-count", 4, "--val-count", 1)
    dtrain("train", *NETWORK, "--data-train", folder / "d/shapes-detection_train", "--batch-size", 4, "--num-epochs", 1,
           "--model-prefix", folder / "m/one", "--job-dir", folder / "job")
    weights = {name: tensor for name, tensor in load_file(folder / "m/one-0001.safetensors").items() if "/" not in name}
    theirs = dict(as_tensorpack_has_it(*each) for each in weights.items())
    must(len(theirs) == len(weights), "two tensors have one name")
    np.savez(folder / "theirs.npz", global_step=np.int64(9), **theirs)
    dtrain("import", folder / "theirs.npz", *NETWORK, "--num-classes", 6, "--out", folder / "m/two")
    read = load_file(folder / "m/two-0000.safetensors")
    must(set(read) == set(weights), "other tensors")
    for name, tensor in weights.items():
        if "mask_fcn_logits" in name:
            tensor = np.concatenate([np.zeros_like(tensor[:1]), tensor[1:]])
        must_equal(read[name], tensor, name)
    print(f"ok   {len(weights)} tensors")


with tempfile.TemporaryDirectory() as name:
    try:
        judge(pathlib.Path(name))
        end(1, 0)
    except (AssertionError, RuntimeError) as error:
        print(f"FAIL {error}")
        end(0, 1)
