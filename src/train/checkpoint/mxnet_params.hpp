// The .params files of MXNet 1.x: a list of NDArrays with names (mxnet src/ndarray/ndarray.cc, NDArray::Save).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/files.hpp>

#include "safetensors.hpp"

namespace dtrain::train {

// Names are written as given ("arg:conv0_weight", "aux:bn0_moving_mean"); dense float32 on the CPU.
void write_mxnet_params(AtomicFile& file, std::span<const NamedTensor> tensors);

struct MxnetArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

bool is_mxnet_params(ByteView file);

// Reads dense float32, float64 and float16 arrays of every version that MXNet 1.x reads itself.
// Lengths are checked before anything is allocated. Throws DataError naming `source`, the array and the byte.
std::vector<MxnetArray> parse_mxnet_params(ByteView file, std::string_view source);

}  // namespace dtrain::train
