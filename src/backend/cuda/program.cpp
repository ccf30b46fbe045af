#include "program.hpp"

#include <algorithm>

#include "../memory_plan.hpp"

namespace dtrain::backend::cuda {
namespace {

constexpr std::size_t kAlignment = 256;

using Sizes = std::vector<std::function<std::size_t(int)>>;

// A tensor lives from the first operation that touches it to the last.
Places places_of(const Sizes& tensors, const std::vector<Operation>& operations, int samples) {
  std::vector<Lifetime> lifetimes(tensors.size(), Lifetime{0, static_cast<int>(operations.size()), -1});
  for (int index = 0; index < static_cast<int>(operations.size()); ++index) {
    const Operation& operation = operations[static_cast<std::size_t>(index)];
    for (const std::vector<TensorId>* const ids : {&operation.touches, &operation.scratch}) {
      for (const TensorId id : *ids) {
        if (id == kNoTensor) continue;
        Lifetime& life = lifetimes[static_cast<std::size_t>(id)];
        life.bytes = tensors[static_cast<std::size_t>(id)](samples);
        life.first = std::min(life.first, index);
        life.last = index;
      }
    }
  }
  return plan_places(lifetimes, kAlignment);
}

}  // namespace

TensorId Program::add_tensor(std::function<std::size_t(int)> bytes) {
  tensors_.push_back(std::move(bytes));
  return static_cast<TensorId>(tensors_.size()) - 1;
}

std::size_t Program::arena_bytes(int max_samples) const { return places_of(tensors_, operations_, max_samples).bytes; }

std::size_t Program::bytes_of(const Operation& operation, int samples) const {
  std::size_t bytes = 0;
  for (const TensorId id : operation.touches) {
    if (id != kNoTensor) bytes += tensors_[static_cast<std::size_t>(id)](samples);
  }
  return bytes;
}

void Program::plan(int max_samples) { offsets_ = places_of(tensors_, operations_, max_samples).offsets; }

std::vector<Call> Program::bind(const Binding& binding) const {
  std::vector<Call> calls;
  for (const Operation& operation : operations_) operation.bind(binding, calls);
  return calls;
}

}  // namespace dtrain::backend::cuda
