// What the rule muon does with weights that are matrices, on a GPU: in the type of the network's values, on tensor
// cores where there are any for it. That is enough in two bytes, too: no singular value of what is multiplied is much
// above 1, and rounding costs less of a step's shape than the iteration leaves undone. float16 holds all of it that
// matters and is the only such type before Ampere.
//
// A product is one launch for all matrices: the blocks of a launch are the tiles of all of them, whatever their shapes.
// So a network of many shapes is padded to whole tiles, and not to its largest matrix as a stack of them would be.
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/backend/dtype.hpp>
#include <dtrain/nn/parameter_groups.hpp>

#include "../device.hpp"

namespace dtrain::backend::cuda {

// Where the matrices of a network are worked on, in one piece of memory: decided before anything is reserved.
struct MuonLayout {
  MuonLayout(const nn::Graph& graph, DType of);

  DType dtype;
  std::vector<MuonMatrix> matrices;
  std::int64_t parts = 0, folds = 0, cells = 0, squares = 0, cell_tiles = 0, square_tiles = 0;
  // In bytes.
  std::uint64_t table = 0, part_sums = 0, fold_sums = 0, lengths = 0, y = 0, next = 0, once = 0, twice = 0;
  std::uint64_t bytes = 0;

 private:
  void add(const nn::WeightMatrix& weight);
  std::uint64_t take(std::int64_t things, std::size_t thing_bytes);
};

// Multiplications of one iteration over all matrices: those that it takes, those that are done in whole tiles, and
// those that would be done if all matrices were padded to one shape.
struct MuonCost {
  double needed = 0, in_tiles = 0, in_one_stack = 0;
};
MuonCost cost_of(const MuonLayout& layout);

// Reserves its memory at once.
class Muon {
 public:
  Muon(Device& device, MuonLayout layout);
  // Adds the calls that move the weights of nn::weight_matrices along the directions that stand in step->sum, with so
  // many iterations.
  void add_calls(float* parameters, const UpdateStep* step, int iterations, std::vector<Call>& calls) const;
  std::uint64_t bytes() const { return memory_.size(); }

 private:
  template <typename T>
  T* at(std::uint64_t place) const {
    return reinterpret_cast<T*>(memory_.data() + place);
  }
  MuonTable table() const;
  template <typename T>
  void add(float* parameters, const UpdateStep* step, int iterations, std::vector<Call>& calls) const;
  template <typename T>
  void add_iteration(const UpdateStep* step, const T* from, T* to, std::vector<Call>& calls) const;

  const MuonLayout layout_;
  DeviceMemory memory_;
};

}  // namespace dtrain::backend::cuda
