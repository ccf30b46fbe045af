// A CUDA runtime without a GPU, for tests of src/backend/cuda/gpu: it defines the functions cuda* of NVIDIA's headers
// that are used there, and launch() of kernels.hpp, instead of libcudart and of the kernels. Work is queued, and
// this CPU does it when somebody waits for it, in an order that is as bad as CUDA's rules allow.
//
// What it shows: an order that two streams need and nobody asked for (other bits, or an ending); host code that touches
// memory of a GPU, or page-locked memory that a copy still needs; memory that is used after its release or behind its
// end; handles that are used after their end; what may not be recorded into a graph; errors that nobody took.
// What it does not show: time, kernels as nvcc makes them, cuDNN's engines, work of one launch in more than one order,
// and what drivers do beyond CUDA's documentation.
//
// To use it: add dtrain_cuda_runtime_standin to what a test program links (an object library, so that its functions
// come before NVIDIA's), and a test per order; see tests/unit/gpu.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dtrain::testing::cuda_runtime {

// Who goes on where several streams could.
enum class Order {
  as_asked,         // everything at once where nothing keeps it waiting
  waited_for_only,  // what somebody waits for, and what that needs; all else as late as can be
  others_first,     // where somebody waits: first whatever he does not wait for
  at_random         // by the seed; streams also go on while nobody waits
};

struct Settings {
  Order order = Order::at_random;
  std::uint64_t seed = 1;
  std::uint64_t memory = std::uint64_t{64} << 20;  // of each GPU, bytes
  int capability = 9;                              // the number before the point
};
constexpr int kGpus = 2;

// A machine as it is after its start. Nothing of before may be used any more.
void start(const Settings& settings);
// From now on; in the middle of work, too.
void change_order(Order order, std::uint64_t seed);

// What broke CUDA's rules since the last call, each beginning with the name of the function that was called.
std::vector<std::string> take_findings();
// Does all that streams were asked for, also those that are destroyed by now: a GPU would, sooner or later.
void finish_all();
// What was reserved and is not given back: streams, events, graphs, memory.
std::vector<std::string> leftovers();

// The next call of this function fails: "cudaGraphInstantiate", "launch".
void fail_next(const std::string& function, cudaError_t error);
// Just before the next call of this function does anything: what other threads could do then.
void before_next(const std::string& function, std::function<void()> act);
// How often a function was called with success since the start.
int calls(const std::string& function);
inline int graph_launches() { return calls("cudaGraphLaunch"); }

// Any work of a stream, as a library would ask for it. It may touch memory of the GPU and call nothing of CUDA's.
cudaError_t enqueue(cudaStream_t stream, const std::string& name, std::function<void()> work);

}  // namespace dtrain::testing::cuda_runtime
