// Whether a plan gives the same bits whenever it computes the same: what it is run on to see that, in memory of its
// own. Pure; gpu/cudnn_convolution.cpp runs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "../call.hpp"

namespace dtrain::backend::cuda {

class ProofLayout {
 public:
  explicit ProofLayout(const Convolution& work);
  std::uint64_t bytes() const { return inputs_ + results_; }
  // The same work with its memory at `memory`, which is aligned to 256 bytes: inputs first, then what it leaves.
  Convolution at(std::byte* memory) const { return at(memory, memory + inputs_); }
  // Or what it leaves somewhere else.
  Convolution at(std::byte* memory, std::byte* results) const;
  std::uint64_t results_begin() const { return inputs_; }
  std::uint64_t results_bytes() const { return results_; }
  // What fills the inputs, one behind the other and the last one in part: values between -1 and 1. They are as many as
  // a prime has it, so that rows of one tensor differ from each other.
  std::vector<std::byte> pattern() const;
  std::int64_t result_values() const { return result_; }

 private:
  const Convolution work_;
  std::uint64_t a_ = 0, b_ = 0, x_ = 0, factors_ = 0, inputs_ = 0;  // offsets; inputs_: the end of them
  std::uint64_t moments_ = 0, results_ = 0;                         // behind the result; bytes of both
  std::int64_t result_ = 0;
};

// By how much two engines may differ that add up the same products of such inputs in float32, each in an order of its
// own, and round the sums to `dtype`.
Tolerance proof_tolerance(DType dtype, std::int64_t products);
// Likewise of the sums of such results and of their squares over so many rows.
Tolerance moments_tolerance(std::int64_t products, std::int64_t rows);

// Whether all of a few runs leave the same bytes as the first. `run` gives what one left; nullopt: it cannot be run.
bool always_the_same(const std::function<std::optional<std::vector<std::byte>>()>& run);

}  // namespace dtrain::backend::cuda
