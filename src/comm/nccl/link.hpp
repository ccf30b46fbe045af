// One NCCL communicator whose calls never block for ever: it is non-blocking, polled until NCCL has accepted the work,
// and aborted when NCCL has not done so by the deadline.
//
// Waiting: nothing of CUDA or NCCL blocks with a deadline and ends on an abort, so a wait is a loop of looks at the
// stream. It spins for the first millisecond, in which the rest of a step's transfers usually ends, and then sleeps for
// a small part of the time that it has waited (pause_after): a step is at most 2 % late, and a long wait for a rank
// that is lost uses no core.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include <dtrain/base/accelerator.hpp>
#include <dtrain/comm/communicator.hpp>

#include "api.hpp"

namespace dtrain::comm::nccl {

using Clock = std::chrono::steady_clock;

// The pause before the next look, after so much waiting.
std::chrono::microseconds pause_after(Clock::duration waited);

// One thread calls; it stops waiting when `aborted` becomes true. After PeerLost or Error it is dead.
class Link {
 public:
  // All ranks of `mesh` at once, which carries the name of the communicator from rank 0. Blocks until they have met.
  // `device`, `mesh` and `aborted` must outlive this.
  Link(const Api& api, Communicator& mesh, Accelerator& device, const std::atomic<bool>& aborted,
       std::chrono::milliseconds patience);
  ~Link();
  Link(const Link&) = delete;

  // Starts on the device's stream, all at once, what `operations` asks for by send() and receive(); returns when NCCL
  // has taken it.
  void group(const std::function<void()>& operations, Clock::time_point deadline);
  void send(const void* from, std::int64_t count, DataType type, int peer);
  void receive(void* to, std::int64_t count, DataType type, int peer);
  // Starts the sum of all ranks' floats, in whatever order NCCL adds them, on the device's stream. All ranks.
  void all_reduce(const void* from, void* to, std::int64_t count, DataType type, Clock::time_point deadline);
  // Until the device has done all its work.
  void wait_for_device(Clock::time_point deadline);
  // Until another queue of the device, on which this rank computes, has reached it.
  void wait_for_computation(DeviceMark mark, std::chrono::milliseconds patience);

 private:
  void require(Result result, const char* what);
  // False: not done at the deadline.
  [[nodiscard]] bool settle(const char* what, Clock::time_point deadline);
  template <typename Done>
  [[nodiscard]] bool wait_until(Done done, const char* what, Clock::time_point deadline);
  void look_for_errors(const char* what);

  const Api& api_;
  Accelerator& device_;
  const std::atomic<bool>& aborted_;
  Handle handle_ = nullptr;
};

}  // namespace dtrain::comm::nccl
