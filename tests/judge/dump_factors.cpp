// dtrain_dump_factors RANK ROWS COLUMNS SHARDS WINDOW <GRADIENTS >SENT: what --gradient-compression powersgd makes of
// one matrix. Raw float32 on both sides: in, ROWS x COLUMNS of each shard for each step; out, COLUMNS x RANK of the
// factor that it begins with, then ROWS x COLUMNS for each step, the sum over the shards that is applied.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include <dtrain/train/gradient_compression.hpp>

namespace {

using namespace dtrain::train;
using Floats = std::vector<float>;

void add(Floats& sum, std::span<const float> values) {
  std::transform(sum.begin(), sum.end(), values.begin(), sum.begin(), std::plus<>());
}

void write(const Floats& values) { std::fwrite(values.data(), sizeof(float), values.size(), stdout); }

// Q, by what it makes of matrices with a single 1.
Floats factor_of(GradientCompressor& compressor, const dtrain::comm::ReductionShape& plain, std::size_t rows) {
  const auto left = static_cast<std::size_t>(compressor.left_shape(plain).size);
  const auto columns = static_cast<std::size_t>(plain.size) / rows, rank = left / rows;
  Floats factor;
  for (std::size_t column = 0; column < columns; ++column) {
    Floats one(static_cast<std::size_t>(plain.size));
    one[column] = 1;
    compressor.open(Floats(one.size()));
    compressor.begin_step(false);
    std::ranges::copy(one, compressor.contribution(0, plain.size).begin());
    compressor.collect(0, {0, plain.size});
    Floats product(left);
    compressor.left_factors(0, product);
    for (std::size_t k = 0; k < rank; ++k) factor.push_back(product[k * rows]);
  }
  return factor;
}

Floats step(GradientCompressor& compressor, const dtrain::comm::ReductionShape& plain, std::vector<Floats>& gradients,
            bool whole) {
  Floats sum(static_cast<std::size_t>(plain.size));
  compressor.begin_step(whole);
  if (whole) {
    for (int shard = 0; shard < plain.shards; ++shard) {
      Floats& leaf = gradients[static_cast<std::size_t>(shard)];
      compressor.take(shard, leaf, {0, plain.size});
      add(sum, leaf);
    }
    compressor.restore(sum);
    compressor.open(compressor.take_rest());
    return sum;
  }
  Floats left(static_cast<std::size_t>(compressor.left_shape(plain).size)), leaf(left.size());
  for (int shard = 0; shard < plain.shards; ++shard) {
    std::ranges::copy(gradients[static_cast<std::size_t>(shard)], compressor.contribution(shard, plain.size).begin());
    compressor.collect(shard, {0, plain.size});
    compressor.left_factors(shard, leaf);
    add(left, leaf);
  }
  compressor.set_left_sum(left);
  Floats right(static_cast<std::size_t>(compressor.right_shape(plain).size));
  leaf.resize(right.size());
  for (int shard = 0; shard < plain.shards; ++shard) {
    compressor.right_factors(shard, leaf);
    add(right, leaf);
  }
  compressor.expand(left, right, sum);
  return sum;
}

}  // namespace

int main(int count, char** words) {
  if (count != 6) return 2;
  const auto number = [&](int word) { return std::atoi(words[word]); };
  const int rows = number(2), columns = number(3), shards = number(4), window = number(5);
  const dtrain::comm::ReductionShape plain{.shards = shards, .size = std::int64_t{rows} * columns};
  const dtrain::nn::TensorView matrix{.name = "m", .shape = {rows, columns}, .offset = 0, .size = plain.size};
  GradientCompressor compressor({.kind = Compression::power_sgd, .rank = number(1)}, {&matrix, 1}, shards, {0, shards});
  write(factor_of(compressor, plain, static_cast<std::size_t>(rows)));
  compressor.open(Floats(static_cast<std::size_t>(plain.size)));
  std::vector<Floats> gradients(static_cast<std::size_t>(shards), Floats(static_cast<std::size_t>(plain.size)));
  for (int made = 0;; ++made) {
    for (Floats& gradient : gradients) {
      if (std::fread(gradient.data(), sizeof(float), gradient.size(), stdin) == gradient.size()) continue;
      return std::fflush(stdout) == 0 ? 0 : 1;
    }
    write(step(compressor, plain, gradients, (made + 1) % window == 0));
  }
}
