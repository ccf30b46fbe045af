// A file of weights, of whichever known format.
#pragma once

#include <vector>

#include <dtrain/base/json.hpp>

#include "checkpoint/safetensors.hpp"
#include "foreign_tensor.hpp"

namespace dtrain::train {

class WeightsFile {
 public:
  // Throws DataError, also for a file that is neither safetensors nor PyTorch's.
  explicit WeightsFile(const Path& path);
  // In the order of the file; they borrow from this object.
  const std::vector<ForeignTensor>& tensors() const { return tensors_; }
  // What dtrain wrote into its own exports; null in files of others.
  const Json& preprocessing() const { return preprocessing_; }

 private:
  MappedFile file_;
  std::vector<ForeignTensor> tensors_;
  Json preprocessing_;
};

}  // namespace dtrain::train
