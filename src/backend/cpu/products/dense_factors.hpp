// The gradient of a large dense layer's weights as what it is made of, so that sums over shards are written without
// the shards' own gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <dtrain/base/deferred_floats.hpp>

#include "../program.hpp"

namespace dtrain::backend::cpu {

// Samples of one shard, in the chunks of its threads. Each element of the gradient is the sum over a thread's samples
// in their order, and these sums are added in the order of the threads: the bits of make_dense_gradient()'s operation.
class DenseFactors final : public DeferredFloats {
 public:
  // The weights [rows][columns] lie at `first` of a contribution; columns: a multiple of kWidestPanel.
  DenseFactors(std::int64_t first, int rows, int columns);

  Part part() const { return {first_, std::int64_t{rows_} * columns_}; }

  struct Chunk {
    int count = 0;                              // samples
    std::unique_ptr<float[]> source, gradient;  // [count][columns], [count][rows]
  };
  void add(Chunk chunk) { threads_.back().push_back(std::move(chunk)); }
  // The shard's samples on its next thread.
  void append(DenseFactors&& next);

  void add_up(std::span<const DeferredFloats* const> leaves, std::int64_t first, std::span<float> out) const override;

 private:
  using Thread = std::vector<Chunk>;
  using Leaves = std::span<const DenseFactors* const>;
  struct Block;

  static void write(Leaves leaves, const Block& block, float* out);
  static void sum_of_leaves(Leaves leaves, const Block& tile, float* sums);
  void sum_of_threads(const Block& tile, float* sums) const;
  void sum_of_samples(const Thread& thread, const Block& tile, float* sums) const;

  const std::int64_t first_;
  const int rows_, columns_;
  std::vector<Thread> threads_;
};

}  // namespace dtrain::backend::cpu
