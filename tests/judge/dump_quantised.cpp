// dtrain_dump_quantised THRESHOLD SIZE <GRADIENTS >SENT: what --gradient-compression 2bit sends of the gradients of
// some steps, SIZE floats each, one step after the other. Raw float32 on both sides.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <dtrain/train/gradient_compression.hpp>

int main(int count, char** words) {
  if (count != 3) return 2;
  const float threshold = std::strtof(words[1], nullptr);
  const std::size_t size = std::strtoul(words[2], nullptr, 10);
  const auto gradients = static_cast<std::int64_t>(size);
  const dtrain::nn::TensorView all{.name = "gradients", .shape = {gradients}, .offset = 0, .size = gradients};
  dtrain::train::GradientCompressor compressor({.kind = dtrain::train::Compression::two_bit, .threshold = threshold},
                                               {&all, 1}, 1, {0, 1});
  std::vector<float> leaf(size);
  while (std::fread(leaf.data(), sizeof(float), size, stdin) == size) {
    compressor.begin_step(false);
    compressor.take(0, leaf, {0, gradients});
    compressor.restore(leaf);
    std::fwrite(leaf.data(), sizeof(float), size, stdout);
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
