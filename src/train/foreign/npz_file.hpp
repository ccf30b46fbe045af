// NumPy's .npz: a zip archive of .npy arrays. The names and layouts of TensorPack's residual networks, and of its
// detectors with a feature pyramid, become those of torchvision.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "foreign_tensor.hpp"

namespace dtrain::train {

struct NpzFile {
  std::vector<ForeignTensor> tensors;  // they borrow from the file and from `owners`
  std::vector<std::shared_ptr<const void>> owners;
};

bool is_npz_file(ByteView file);
// Throws DataError naming `source` and the array.
NpzFile parse_npz_file(ByteView file, const std::string& source);

// TensorPack's name of a tensor ("group0/block1/conv2/bn/gamma") as torchvision calls it ("layer1.1.bn2.weight"); the
// same name where it is none of TensorPack's.
std::string torch_name_of_tensorpack(const std::string& name);

}  // namespace dtrain::train
