// Which of cuDNN's engines may compute a convolution, and in what order they are tried. Pure: nothing here asks a GPU.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <dtrain/backend/dtype.hpp>

namespace dtrain::backend::cuda {

// What cuDNN says of one way to compute something.
struct EngineFacts {
  std::string name;             // the engine's number and its settings, "67:2=1,13=4": the same in every process
  bool same_bits = true;        // whenever it computes the same again
  bool tensor_cores = false;    // which round float32 to ten bits
  bool narrows_inputs = false;  // to a smaller type
  bool narrows_sums = false;    // adds in less than float32
};

// Results do not depend on the run, sums are float32, and what is float32 is not rounded to less.
bool may_compute(const EngineFacts& engine, DType dtype);

// Indices of the engines that may, in the order given, each name once.
std::vector<std::size_t> engines_to_try(const std::vector<EngineFacts>& engines, DType dtype);

}  // namespace dtrain::backend::cuda
