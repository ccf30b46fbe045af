#include "link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include <dtrain/base/error.hpp>

namespace dtrain::comm::nccl {
namespace {

using namespace std::chrono_literals;

constexpr auto kSpin = 1ms;
constexpr std::chrono::microseconds kLongestPause = 1ms;
constexpr int kPartOfWait = 64;
constexpr const char* kHint =
    "NCCL_DEBUG=WARN in the environment makes NCCL say more; setting 'transport' tcp does without it";

UniqueId id_of_rank_0(const Api& api, Communicator& mesh) {
  UniqueId id{};
  Result made = Result::success;
  if (mesh.rank() == 0) made = api.get_unique_id(&id);
  const std::vector<std::string> all =
      mesh.all_gather(mesh.rank() == 0 && made == Result::success ? std::as_bytes(std::span(id.bytes)) : ByteView());
  if (all[0].size() != sizeof id.bytes) {
    const std::string problem = "rank 0 cannot make a communicator of NCCL";
    if (mesh.rank() != 0) throw PeerLost(problem, kHint);
    throw Error(fmt::format("{}: {}", problem, api.error_text(made)), kHint);
  }
  std::memcpy(id.bytes, all[0].data(), sizeof id.bytes);
  return id;
}

double seconds_of(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

void require_in_time(bool ended, const char* what) {
  if (ended) return;
  throw PeerLost(fmt::format("NCCL did not end {} in time: a rank is gone, or does not answer", what));
}

}  // namespace

std::chrono::microseconds pause_after(Clock::duration waited) {
  if (waited < kSpin) return 0us;
  return std::min(kLongestPause, std::chrono::duration_cast<std::chrono::microseconds>(waited / kPartOfWait));
}

Link::Link(const Api& api, Communicator& mesh, Accelerator& device, const std::atomic<bool>& aborted,
           std::chrono::milliseconds patience)
    : api_(api), device_(device), aborted_(aborted) {
  const UniqueId id = id_of_rank_0(api, mesh);
  device.stream();
  Config config;
  const Result result = api.init(&handle_, mesh.size(), id, mesh.rank(), &config);
  try {
    require(result, "the meeting of the ranks");
    if (!settle("the meeting of the ranks", Clock::now() + patience)) {
      throw PeerLost(
          fmt::format("the ranks did not meet in NCCL within {} s: a rank is gone, or NCCL needs longer to "
                      "begin; a longer setting 'comm-timeout' gives it more time",
                      seconds_of(patience)));
    }
  } catch (...) {
    if (handle_) api_.abort(handle_);
    throw;
  }
}

Link::~Link() {
  if (handle_) api_.abort(handle_);
}

void Link::group(const std::function<void()>& operations, Clock::time_point deadline) {
  require(api_.group_start(), "the start of a group");
  try {
    operations();
  } catch (...) {
    api_.group_end();  // the next group of this thread is another one
    throw;
  }
  require(api_.group_end(), "the end of a group");
  require_in_time(settle("the start of a transfer", deadline), "the start of a transfer");
}

void Link::send(const void* from, std::int64_t count, DataType type, int peer) {
  require(api_.send(from, static_cast<std::size_t>(count), type, peer, handle_, device_.stream()), "a transfer");
}

void Link::receive(void* to, std::int64_t count, DataType type, int peer) {
  require(api_.receive(to, static_cast<std::size_t>(count), type, peer, handle_, device_.stream()), "a transfer");
}

void Link::all_reduce(const void* from, void* to, std::int64_t count, DataType type, Clock::time_point deadline) {
  require(api_.all_reduce(from, to, static_cast<std::size_t>(count), type, Operation::sum, handle_, device_.stream()),
          "a sum");
  require_in_time(settle("the start of a sum", deadline), "the start of a sum");
}

void Link::wait_for_device(Clock::time_point deadline) {
  require_in_time(wait_until([this] { return device_.is_idle(); }, "a transfer", deadline), "a transfer");
}

void Link::wait_for_computation(DeviceMark mark, std::chrono::milliseconds patience) {
  const bool reached = wait_until([this, mark] { return device_.is_reached(mark); },
                                  "a transfer beside the computation", Clock::now() + patience);
  if (reached) return;
  throw PeerLost(
      fmt::format("this rank's GPU did not end its own computation within {} s, which is setting "
                  "'comm-timeout' for each shard: it needs more time, or a transfer to a rank that is gone "
                  "holds it up",
                  seconds_of(patience)));
}

void Link::require(Result result, const char* what) {
  if (result == Result::success || result == Result::in_progress) return;
  const std::string text = fmt::format("NCCL failed at {}: {}", what, api_.error_text(result));
  if (result == Result::remote_error || result == Result::system_error) throw PeerLost(text);
  throw Error(text, kHint);
}

bool Link::settle(const char* what, Clock::time_point deadline) {
  return wait_until(
      [&] {
        Result state = Result::success;
        require(api_.async_error(handle_, &state), what);
        require(state, what);
        return state == Result::success;
      },
      what, deadline);
}

void Link::look_for_errors(const char* what) {
  Result state = Result::success;
  require(api_.async_error(handle_, &state), what);
  require(state, what);
}

template <typename Done>
bool Link::wait_until(Done done, const char* what, Clock::time_point deadline) {
  const Clock::time_point begin = Clock::now();
  while (!done()) {
    if (aborted_) throw PeerLost("the communicator was aborted");
    look_for_errors(what);
    const Clock::time_point now = Clock::now();
    if (now >= deadline) return false;
    if (const auto pause = pause_after(now - begin); pause > 0us) {
      std::this_thread::sleep_for(pause);
    } else {
      std::this_thread::yield();
    }
  }
  return true;
}

}  // namespace dtrain::comm::nccl
