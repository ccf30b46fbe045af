#include "dense_rows.hpp"

namespace dtrain::backend::cpu {

const float* DenseRows::read(int count, const void* tensor, DType type, float* scratch) const {
  const std::int64_t all = count * shape_.size();
  const auto* values = static_cast<const float*>(tensor);
  if (type == DType::bfloat16) {
    kernels_for(select_kernels(), type).to_float(tensor, scratch, all);
    values = scratch;
  }
  if (pixels() == 1) return values;
  float* const rows = scratch + all;
  for (std::int64_t first = 0; first < all; first += shape_.size()) {
    select_kernels().float32.to_planes(values + first, shape_.c, pixels(), rows + first);
  }
  return rows;
}

void DenseRows::to_tensor(int count, const float* rows, void* tensor, DType type, float* scratch) const {
  const std::int64_t all = count * shape_.size();
  float* const pixels_first = type == DType::float32 ? static_cast<float*>(tensor) : scratch;
  const bool moves = pixels() > 1;
  for (std::int64_t first = 0; moves && first < all; first += shape_.size()) {
    select_kernels().float32.from_planes(rows + first, shape_.c, pixels(), pixels_first + first);
  }
  if (type == DType::float32) return;
  kernels_for(select_kernels(), type).from_float(moves ? pixels_first : rows, tensor, all);
}

}  // namespace dtrain::backend::cpu
