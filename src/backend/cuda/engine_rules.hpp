// Which of cuDNN's engines may compute a convolution, in what order they are tried, and which of those that were
// measured is taken. Pure: nothing here asks a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dtrain/backend/cuda.hpp>

#include "call.hpp"

namespace dtrain::backend::cuda {

// What cuDNN says of one way to compute something, or what dtrain knows of its own.
struct EngineFacts {
  std::string name;               // the engine's number and its settings, "67:2=1,13=4": the same in every process
  bool same_bits = true;          // whenever it computes the same again, as cuDNN notes it: see needs_proof()
  bool made_at_run_time = false;  // its kernel is compiled for the work, and not one of those that cuDNN ships
  bool tensor_cores = false;      // which round float32 to ten bits
  bool narrows_inputs = false;    // to a smaller type
  bool narrows_sums = false;      // adds in less than float32
  bool own = false;               // dtrain's kernel (product.hpp)
};

// Whether dtrain's own engines are among those to choose from: never, only one that an earlier run chose, or always.
enum class OwnEngines { never, chosen, always };
OwnEngines own_engines(OwnProducts wanted, int plans_to_time);

struct EngineRules {
  bool tf32 = false;                 // float32 may be rounded to the ten bits of tensor cores
  bool deterministic = true;         // only what gives the same bits
  std::uint64_t most_workspace = 0;  // bytes
  OwnEngines own = OwnEngines::never;
};

// The rule of one convolution: only one whose bits may differ is computed in any order, and only where the rules allow
// it.
EngineRules rules_for(const Convolution& work, EngineRules rules);

// Results do not depend on the run and what is float32 is not rounded to less, unless the rules say so; sums are
// float32.
bool may_compute(const EngineFacts& engine, DType dtype, const EngineRules& rules);

// dtrain's own engines for the work, the likeliest first: one that was chosen, or all.
std::vector<EngineFacts> own_engines_for(const Convolution& work, const EngineRules& rules,
                                         const std::string& preferred);

// Whether its same bits must be seen before it computes the work. cuDNN's note is right about the kernels that it
// ships; of those that it makes at run time, some add by atomic operations and have no such note. dtrain's own must
// also be seen to agree with cuDNN.
bool needs_proof(const EngineFacts& engine, const Convolution& work, const EngineRules& rules);

// Indices of the engines that may, each name once: the one called `preferred` first, the others in the order given.
std::vector<std::size_t> engines_to_try(const std::vector<EngineFacts>& engines, DType dtype, const EngineRules& rules,
                                        const std::string& preferred);

// Whether cuDNN may compute a convolution with moments or of a normed input at all: what it ships for that is for
// float16 and whole vectors of channels. What it makes at run time in bfloat16 adds by atomic operations, on slower
// tensor cores.
bool may_fuse(const Convolution& work);
bool asks_cudnn(const Convolution& work);  // that, or it is a convolution alone

// Index of the one to take of those that took so long: an earlier one unless a later one is clearly faster. At least
// one.
std::size_t clearly_fastest(std::span<const double> seconds);

}  // namespace dtrain::backend::cuda
