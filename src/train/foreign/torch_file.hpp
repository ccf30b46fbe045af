// Files of torch.save that hold a state dict: the zip archives of PyTorch since 1.6, and the pickles in a row before
// it, which torchvision still publishes.
#pragma once

#include <string>
#include <vector>

#include "foreign_tensor.hpp"

namespace dtrain::train {

bool is_torch_file(ByteView file);

// The tensors of nested dictionaries, each named by the path of its keys: "model.conv1.weight". They borrow from
// `file`. Throws DataError naming `source`: damage, a pickle that would run something, big-endian numbers.
std::vector<ForeignTensor> parse_torch_file(ByteView file, const std::string& source);

}  // namespace dtrain::train
