// Lengths of whole tensors on a GPU, for the norm of all gradients and for the rules lamb and lars.
#pragma once

#include <vector>

#include "../device.hpp"

namespace dtrain::backend::cuda {

// Reserves its memory at once.
class TensorLengths {
 public:
  TensorLengths(Device& device, const nn::Graph& graph);
  // Adds the calls that measure tensors of step->sum, and tensors of weights.
  void add_squares(const float* parameters, const UpdateStep* step, std::vector<Call>& calls) const;
  // Of all that these calls measured in step->sum. Waits for them.
  double length_of_sum() const;
  // Adds the calls that make the divisor of gradients what their norm asks for.
  void add_cut(const float* parameters, UpdateStep* step, std::vector<Call>& calls) const;
  // Adds the calls that move weights along the directions in step->sum.
  void add_moves(float* parameters, const std::uint8_t* flags, const UpdateStep* step, std::vector<Call>& calls) const;
  std::uint64_t bytes() const { return memory_.size(); }

 private:
  struct Layout;
  TensorLengths(Device& device, const Layout& layout);
  UpdatedTensors table() const;
  TensorSquares* at(std::uint64_t offset) const { return reinterpret_cast<TensorSquares*>(memory_.data() + offset); }

  Device& device_;
  const std::int32_t tensors_;
  const std::int64_t parts_, parameters_;
  const std::uint64_t part_squares_, squares_;  // offsets in bytes
  DeviceMemory memory_;
};

}  // namespace dtrain::backend::cuda
