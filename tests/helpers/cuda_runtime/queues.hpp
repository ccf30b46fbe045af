// Streams as queues of work, and who goes on where several could.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "memory.hpp"
#include "runtime.hpp"

namespace dtrain::testing::cuda_runtime {

// A point in a stream that others wait for.
struct Mark {
  const CUstream_st* stream = nullptr;
  bool reached = false;
};

struct Operation {
  std::string name;
  std::shared_ptr<const Mark> after = nullptr;    // must be reached first
  std::vector<std::function<void()>> turns = {};  // between which other streams may go on
};

// What a stream is asked for; makes the operation anew each time it is to be done.
using Node = std::function<Operation(const CUstream_st& stream)>;

struct Capture {
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  std::vector<Node> nodes = {};
  bool invalid = false;
};

}  // namespace dtrain::testing::cuda_runtime

struct CUstream_st {
  int gpu = 0;
  bool destroyed = false;
  std::deque<dtrain::testing::cuda_runtime::Operation> queue = {};
  std::optional<dtrain::testing::cuda_runtime::Capture> capture = {};
};

namespace dtrain::testing::cuda_runtime {

class Queues {
 public:
  Queues(const Memory& memory, const Settings& settings)
      : memory_(memory), order_(settings.order), random_(settings.seed) {}
  void change_order(Order order, std::uint64_t seed) {
    order_ = order;
    random_ = seed;
  }
  cudaStream_t add(int gpu);
  const std::vector<std::unique_ptr<CUstream_st>>& streams() const { return streams_; }

  void push(CUstream_st& stream, Operation operation);
  // Throws Refusal where that never comes.
  void finish(CUstream_st& stream);
  void reach(const Mark& mark);
  // Somebody looked, without waiting, at this stream.
  void go_on_a_little(const CUstream_st& stream);

 private:
  template <typename Done>
  void run_until(const CUstream_st& wanted, Done done);
  CUstream_st* choose(const CUstream_st& wanted);
  CUstream_st* needed_for(const CUstream_st& wanted) const;
  std::vector<CUstream_st*> ready(const CUstream_st* but = nullptr) const;
  void step(CUstream_st& stream);
  std::uint64_t draw(std::uint64_t below);

  const Memory& memory_;
  Order order_;
  std::uint64_t random_;
  std::vector<std::unique_ptr<CUstream_st>> streams_;
};

}  // namespace dtrain::testing::cuda_runtime
