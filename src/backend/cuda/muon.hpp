// What the rule muon does with weights that are matrices, on a GPU.
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/backend/backend.hpp>

#include "device.hpp"

namespace dtrain::backend::cuda {

// Reserves its memory at once: about six times that of the weights.
class Muon {
 public:
  Muon(Device& device, const nn::Graph& graph);
  // Adds the calls that move the weights of nn::weight_matrices along `directions`, a flat buffer as `parameters`.
  void add_calls(float* parameters, const float* directions, const Update& update, std::vector<Call>& calls) const;
  std::uint64_t bytes() const { return memory_.size(); }

 private:
  // What the matrices have of each kind, together.
  struct Totals {
    std::int64_t elements = 0, parts = 0, cells = 0, squares = 0, depths = 0;
  };
  // In bytes.
  struct Places {
    std::uint64_t table = 0, sums = 0, lengths = 0, x = 0, next = 0, transposed = 0, depths = 0, squares = 0, rests = 0;
    std::uint64_t all = 0;
  };
  static std::vector<MuonMatrix> matrices_of(const nn::Graph& graph);
  static Totals totals_of(const std::vector<MuonMatrix>& matrices);
  static Places places_of(std::size_t number, const Totals& totals);
  template <typename T>
  T* at(std::uint64_t place) const {
    return reinterpret_cast<T*>(memory_.data() + place);
  }
  void add_iteration(const nn::NewtonSchulz& rule, std::vector<Call>& calls) const;

  const std::vector<MuonMatrix> matrices_;
  const Totals totals_;
  const Places places_;
  DeviceMemory memory_;
};

}  // namespace dtrain::backend::cuda
