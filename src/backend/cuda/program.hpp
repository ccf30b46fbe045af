// A compiled graph: operations in order over tensors with planned places. What the operations are depends on the graph
// alone; bind() makes the calls for a number of samples.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "call.hpp"

namespace dtrain::backend::cuda {

using TensorId = int;
constexpr TensorId kNoTensor = -1;

// Where the parts of an executable's memory are, for n samples.
struct Binding {
  int n = 0;
  std::byte* arena = nullptr;
  const std::vector<std::size_t>* offsets = nullptr;  // of tensors in the arena
  float* parameters = nullptr;
  float* statistics = nullptr;
  float* contribution = nullptr;     // see ContributionLayout
  float* coefficients = nullptr;     // of batch norms
  std::uint32_t* tickets = nullptr;  // see FoldedSums
  void* weights = nullptr;           // the copies, see WeightTable
  void* weight_gradients = nullptr;  // of the copies
  bool unpacks_gradients = true;     // into the contribution; else they are nowhere but in weight_gradients
  const PackedWeight* weight_table = nullptr;
  const Samples* samples = nullptr;
  std::int32_t* labels = nullptr;
  std::uint32_t* sample_ids = nullptr;
  std::int32_t* partners = nullptr;
  float* shares = nullptr;
  const float* class_weights = nullptr;  // where the loss has some
  const DropoutKey* key = nullptr;
  const float* loss_scale = nullptr;  // null: not of this dtype
  float* logits = nullptr;            // [n, classes]: evaluation only
  float* metrics = nullptr;           // [4]: evaluation only

  template <typename P>
  P* tensor(TensorId id) const {
    return id == kNoTensor ? nullptr : reinterpret_cast<P*>(arena + (*offsets)[static_cast<std::size_t>(id)]);
  }
};

struct Operation {
  std::string name;  // node and direction
  const char* kind = "";
  nn::Shape shape;                // of the node's output
  std::vector<TensorId> touches;  // what it reads or writes
  std::vector<TensorId> scratch;  // what it needs where definitions compute it
  std::function<void(const Binding&, std::vector<Call>&)> bind;
};

class Program {
 public:
  // bytes(n) for n samples; must not fall as n grows.
  TensorId add_tensor(std::function<std::size_t(int)> bytes);
  void add(Operation operation) { operations_.push_back(std::move(operation)); }
  // Bytes of the arena for up to max_samples.
  std::size_t arena_bytes(int max_samples) const;
  // Bytes of all that an operation touches: what it moves, where it goes through each tensor once. Without scratch.
  std::size_t bytes_of(const Operation& operation, int samples) const;
  // Plans places for up to max_samples. No additions afterwards.
  void plan(int max_samples);
  const std::vector<std::size_t>& offsets() const { return offsets_; }
  const std::vector<Operation>& operations() const { return operations_; }
  std::vector<Call> bind(const Binding& binding) const;

 private:
  std::vector<std::function<std::size_t(int)>> tensors_;
  std::vector<Operation> operations_;
  std::vector<std::size_t> offsets_;
};

}  // namespace dtrain::backend::cuda
