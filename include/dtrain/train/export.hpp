// A checkpoint in the formats of others.
#pragma once

#include <string>
#include <vector>

#include <dtrain/train/checkpoint.hpp>

namespace dtrain::train {

// Each returns the files it wrote (whole or not at all).
std::vector<Path> export_safetensors(const Checkpoint& checkpoint, const Path& file);  // weights and statistics only
std::vector<Path> export_onnx(const Checkpoint& checkpoint, const Path& file);         // opset 13, free batch size
std::vector<Path> export_mxnet(const Checkpoint& checkpoint, const Path& prefix,
                               std::uint32_t epoch);  // PREFIX-symbol.json, PREFIX-0001.params

// PREFIX-symbol.json + PREFIX-%04d.params as MXNet 1.x writes them.
Checkpoint import_mxnet(const Path& prefix, std::uint32_t epoch, nn::Shape image, int classes);

}  // namespace dtrain::train
