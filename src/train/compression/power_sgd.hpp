// Matrices that travel as two thin factors: PowerSGD (Vogels, Karimireddy and Jaggi 2019).
//
// The gradient M of a layer with the outputs as rows is summed over the shards in two exchanges, with Q from the step
// before:
//   P = sum of M Q        rows x rank
//   P = orthonormal(P)    by all ranks alike
//   Q = sum of M'P        columns x rank
// and the sum of M is taken to be PQ', which is the projection of that sum on the columns of P. One step of the power
// method is made with each training step, so P turns to where the gradients of many steps point. Tensors that are no
// matrix, and matrices that two factors would not make smaller, travel as they are in the first exchange.
//
// Same bits: what a shard adds depends on the shard alone, sums are those of the tree, and columns are made orthonormal
// one after the other, in float32 with products in a fixed order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <dtrain/base/accelerator.hpp>
#include <dtrain/nn/graph.hpp>

namespace dtrain::train {

class PowerSgd {
 public:
  PowerSgd(std::span<const nn::TensorView> parameters, int rank);

  // Floats of the two exchanges.
  std::int64_t left_size() const { return left_size_; }
  std::int64_t right_size() const { return right_size_; }

  // Q as all ranks can know it: a step of the power method on gradients that all of them have, from fixed random
  // numbers; these numbers themselves where the gradients are 0.
  void begin(std::span<const float> gradients);
  // M Q of each matrix, and what is none. Any thread.
  void multiply_left(std::span<const float> gradients, std::span<float> to) const;
  void set_left(std::span<const float> sum);
  // M'P of each matrix. Any thread.
  void multiply_right(std::span<const float> gradients, std::span<float> to) const;
  void set_right(std::span<const float> sum);
  // The gradients that these sums say.
  void expand(std::span<const float> left, std::span<const float> right, std::span<float> gradients) const;
  // Takes what these right factors say, and all that is no matrix, from the gradients. Any thread.
  void subtract(std::span<const float> right, std::span<float> gradients) const;

 private:
  struct Matrix {
    std::int64_t first = 0;  // among the gradients, row after row
    std::int64_t rows = 0, columns = 0;
    int rank = 0;
    std::int64_t left = 0, right = 0;  // where its factors begin; column after column
  };
  std::vector<Matrix> matrices_;
  std::vector<FloatRange> others_;  // gradients that travel as they are
  std::int64_t left_factors_ = 0, left_size_ = 0, right_size_ = 0;
  std::vector<float> left_, right_;  // P, orthonormal, and Q
};

}  // namespace dtrain::train
