// Samples of a large dense layer's source as rows of float32 numbers, in the order of its weights' columns. A row of
// weights goes channel by channel; a tensor goes pixel by pixel.
#pragma once

#include "../program.hpp"

namespace dtrain::backend::cpu {

class DenseRows {
 public:
  // Of samples of this shape.
  explicit DenseRows(const nn::Shape& shape) : shape_(shape) {}

  int size() const { return static_cast<int>(shape_.size()); }
  // Floats that read() and write() want as `scratch`, for so many samples.
  std::int64_t scratch(int count) const { return 2 * count * shape_.size(); }

  // Returns the rows of a tensor's samples: the tensor itself where it has them, else `scratch`.
  const float* read(int count, const void* tensor, DType type, float* scratch) const;
  // Has work(float* rows) write the rows of a tensor's samples.
  template <typename Work>
  void write(int count, void* tensor, DType type, float* scratch, Work work) const {
    float* const rows = are_in(type) ? static_cast<float*>(tensor) : scratch;
    work(rows);
    if (rows != tensor) to_tensor(count, rows, tensor, type, scratch + count * shape_.size());
  }

 private:
  std::int64_t pixels() const { return std::int64_t{shape_.h} * shape_.w; }
  bool are_in(DType type) const { return type == DType::float32 && pixels() == 1; }
  void to_tensor(int count, const float* rows, void* tensor, DType type, float* scratch) const;

  const nn::Shape shape_;
};

}  // namespace dtrain::backend::cpu
