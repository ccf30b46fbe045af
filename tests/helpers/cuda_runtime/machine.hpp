// All that the stand-in holds, behind one mutex, and how each of its functions begins and ends.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "memory.hpp"
#include "queues.hpp"
#include "refusal.hpp"
#include "runtime.hpp"

struct CUevent_st {
  int gpu = 0;
  bool timed = false;
  bool destroyed = false;
  std::shared_ptr<const dtrain::testing::cuda_runtime::Mark> latest = nullptr;  // null: never recorded
  const CUstream_st* captured_in = nullptr;                                     // its last record is part of a capture
};

struct CUgraph_st {
  bool destroyed = false;
  std::vector<dtrain::testing::cuda_runtime::Node> nodes = {};
};

struct CUgraphExec_st {
  bool destroyed = false;
  std::vector<dtrain::testing::cuda_runtime::Node> nodes = {};
  std::shared_ptr<const dtrain::testing::cuda_runtime::Mark> latest = nullptr;  // the end of its last launch
};

namespace dtrain::testing::cuda_runtime {

// What was made, for ever, so that a handle that is used after its end is known.
template <typename T>
using Made = std::vector<std::unique_ptr<T>>;

struct Machine {
  explicit Machine(const Settings& of) : settings(of), queues(memory, of) {}

  const Settings settings;
  Memory memory;
  Queues queues;
  Made<CUevent_st> events;
  Made<CUgraph_st> graphs;
  Made<CUgraphExec_st> executables;
  std::vector<std::string> findings;
  std::map<std::string, cudaError_t> to_fail;
  std::map<std::string, std::function<void()>> to_precede;
  std::map<std::string, int> calls;  // that succeeded

  // Belongs to the calling thread.
  static int& gpu();
  static cudaError_t& last_error();

  // Asks the stream for it: now, or in each launch of what is recorded.
  void submit(CUstream_st& stream, Node node);
  // A call that may not be while this thread, or any, records.
  void refuse_in_capture();
};

// The recording cannot be ended well any more. Throws.
[[noreturn]] void invalidate(CUstream_st& stream, cudaError_t error);

template <typename T>
T& use(const Made<T>& made, T* handle, const char* what) {
  if (!handle) throw Refusal{cudaErrorInvalidResourceHandle, std::string("null instead of ") + what};
  for (const auto& each : made) {
    if (each.get() != handle) continue;
    if (each->destroyed) throw Refusal{cudaErrorInvalidResourceHandle, std::string(what) + " that was destroyed"};
    return *each;
  }
  throw Refusal{cudaErrorInvalidResourceHandle, std::string("this is not ") + what};
}
inline CUstream_st& use(Machine& machine, cudaStream_t stream) {
  return use(machine.queues.streams(), stream, "a stream");
}
inline CUevent_st& use(Machine& machine, cudaEvent_t event) { return use(machine.events, event, "an event"); }

std::mutex& machine_mutex();  // guards machine()
std::unique_ptr<Machine>& machine();
// What a test wants done before this function; done without the mutex.
void precede(const std::string& function);
// Notes what was found and what the thread's last error is.
cudaError_t answer(const std::string& function, const Refusal& refusal);

// One call of the runtime: `work` throws Refusal, or succeeds.
template <typename Do>
cudaError_t call(const std::string& function, Do work) {
  precede(function);
  const std::lock_guard lock(machine_mutex());
  try {
    Machine& here = *machine();
    if (const auto told = here.to_fail.find(function); told != here.to_fail.end()) {
      const cudaError_t error = told->second;
      here.to_fail.erase(told);
      throw Refusal{error, {}};
    }
    work(here);
    ++here.calls[function];
    return cudaSuccess;
  } catch (const Refusal& refusal) {
    return answer(function, refusal);
  }
}

}  // namespace dtrain::testing::cuda_runtime
