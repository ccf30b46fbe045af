// What the rule muon does with weights that are matrices: all of them side by side, a phase after the other.
#pragma once

#include <dtrain/backend/backend.hpp>
#include <dtrain/nn/parameter_groups.hpp>

#include "../buffer.hpp"
#include "../kernels/kernels.hpp"
#include "in_parts.hpp"

namespace dtrain::backend::cpu {

// StepNumbers::most of the rule.
inline double most_of(const nn::Optimizer& rule) {
  return rule.clip_gradient > 0 ? double{rule.clip_gradient} : StepNumbers{}.most;
}

// Costs nothing until it moves something, then keeps its scratch memory. One thread at a time; `kernels` must outlive
// this.
class Muon {
 public:
  // `parts`: into how many the InParts of later calls divide, at most.
  Muon(const nn::Graph& graph, const Kernels& kernels, int parts);
  // Moves the weights of nn::weight_matrices and their momentum, the first slot of state.optimizer. Which part computes
  // what is left to chance; the result is not.
  void move_matrices(std::span<const float> gradients, double count, const Update& update, const InParts& in_parts,
                     ModelState& state);
  std::uint64_t bytes() const { return scratch_.size() + panels_.size(); }

 private:
  struct Item {
    nn::WeightMatrix of;
    int rows = 0, columns = 0;          // of the iteration, which has rows <= columns
    std::int64_t direction = 0;         // in the scratch: as the weight lies
    std::int64_t x = 0;                 // ... and as the iteration needs it: the same where the weight is not tall
    std::int64_t square = 0, rest = 0;  // ... [rows, rows]
    std::int64_t first_chunk = 0;       // in chunks_
    float length = 0;                   // of the direction
    double scale = 1;                   // of the weight before the step
    bool tall() const { return of.rows > of.columns; }
  };
  // Elements [first, first + count) of a weight.
  struct Chunk {
    int item = 0;
    std::int64_t first = 0, count = 0;
    double squares = 0, weight_squares = 0;
  };
  // A panel of a product.
  struct Panel {
    int item = 0, first = 0;
  };

  void ensure_scratch();
  float* at(std::int64_t place) const { return scratch_.as<float>() + place; }
  void add_up_squares();
  void load_x(Item& item);
  void unload_x(Item& item);
  void iterate(const nn::NewtonSchulz& rule, const InParts& in_parts);

  const Kernels& kernels_;
  const int parts_;
  std::vector<Item> items_;
  std::vector<Chunk> chunks_;
  std::vector<Panel> square_panels_, x_panels_;
  std::int64_t floats_ = 0;
  std::int64_t panel_floats_ = 0;  // of one part
  Buffer scratch_, panels_;
};

}  // namespace dtrain::backend::cpu
