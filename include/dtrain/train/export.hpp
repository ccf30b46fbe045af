// A checkpoint in the formats of others.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/train/checkpoint.hpp>

namespace dtrain::train {

// Each returns the files it wrote (whole or not at all). Tensors are float32 and, but for safetensors, keep their
// names. Weights and running statistics, no optimizer, as PyTorch calls them: "NODE.weight", "NODE.running_mean".
std::vector<Path> export_safetensors(const Checkpoint& checkpoint, const Path& file);
// PREFIX-symbol.json and PREFIX-0001.params as MXNet 1.x loads them.
std::vector<Path> export_mxnet(const Checkpoint& checkpoint, const Path& prefix, std::uint32_t epoch);
std::vector<Path> mxnet_export_files(const Path& prefix, std::uint32_t epoch);  // that it writes
// What is lost there of a network with this loss; empty: nothing.
std::string lost_in_mxnet(const nn::SoftmaxLoss& loss);
// The newest .params of the prefix, besides that of `epoch`, to which the symbol that is there belongs, where that is
// another network than the checkpoint's: export_mxnet() would take it away from them. nullopt: none.
std::optional<Path> params_of_other_network(const Checkpoint& checkpoint, const Path& prefix, std::uint32_t epoch,
                                            const SharedStore& store = {});
// The checkpoint that export_onnx() wrote: network, weights and preprocessing, at the beginning of a run. Or a model of
// another program that network_of_onnx_model() reads, with its weights and without preprocessing. Throws DataError.
Checkpoint import_onnx(const Path& file);

// Opset 13. Input: the normalised image "data" (the input node's name), float32 [n, c, h, w] with a free n; output
// "logits" [n, classes], before the softmax or sigmoid. metadata_props hold the JSON documents "preprocessing", with
// mean and deviation of the pixels, "classes", the names by label, and "dtrain_graph", the network for import_onnx().
// Where names of an imported network meet those of the model, the output keeps its own, then the input, then the
// tensor; another value gets "_2" behind it.
//
// A detector has the second input "sizes", int64 [n or 1, 2]: the height and width of the picture in each image, which
// is in the upper left corner; without it pictures fill their images. For "pixels" what lies outside counts as 0 after
// normalising. Outputs, best first, as `nn::Detections` says: "boxes" [n, k, 4], the edges left, top, right and bottom
// in pixels of the image; "scores" [n, k], 0 where there is nothing more; "labels", int64 [n, k]; and of a detector of
// masks "masks" [n, k, points, points], which fill the box.
struct OnnxOptions {
  bool preprocessing = false;  // the input is "pixels", uint8 [n, h, w, c], of the network's size
  bool softmax = false;        // the output is "probabilities", those of best_guesses()
};
std::vector<Path> export_onnx(const Checkpoint& checkpoint, const Path& file, const OnnxOptions& options = {});

// Whether the file holds what one of these functions writes, by what the file itself says. Tensors of a checkpoint may
// look the same: is_checkpoint_file() knows them. `store` reaches one behind s3://.
bool is_export(const Path& file, const SharedStore& store = {});

// Calls write(place), or where `place` is behind s3://: write() with a place in a folder of this machine, from which
// the files are then sent. Returns where the files are.
std::vector<Path> export_to(const Path& place, const std::function<std::vector<Path>(const Path& place)>& write,
                            const SharedStore& store = {});

// PREFIX-symbol.json + PREFIX-%04d.params as MXNet 1.x writes them. The files hold no optimizer, no image shape and no
// count of samples: the state has no optimizer slots, updates and samples_seen are 0, and `image` must be given unless
// the symbol says it. Throws DataError naming the first array that is missing, unknown or of another shape.
Checkpoint import_mxnet(const Path& prefix, std::uint32_t epoch, std::optional<nn::Shape> image,
                        std::optional<int> classes, const SharedStore& store = {});
// Whether there is a .params file of that epoch.
bool mxnet_is_there(const Path& prefix, std::uint32_t epoch, const SharedStore& store = {});

}  // namespace dtrain::train
