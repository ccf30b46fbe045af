#include "machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "faults.hpp"

namespace dtrain::testing::cuda_runtime {
namespace {

template <typename T>
void count(std::vector<std::string>& left, const Made<T>& made, const char* what) {
  const auto number = std::ranges::count_if(made, [](const auto& each) { return !each->destroyed; });
  if (number > 0) left.push_back(fmt::format("{} {}", number, what));
}

}  // namespace

std::mutex& machine_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::unique_ptr<Machine>& machine() {
  static auto the = std::make_unique<Machine>(Settings{});
  return the;
}

int& Machine::gpu() {
  thread_local int chosen = 0;
  return chosen;
}
cudaError_t& Machine::last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

void Machine::submit(CUstream_st& stream, Node node) {
  if (!stream.capture) return queues.push(stream, node(stream));
  if (stream.capture->invalid) throw Refusal{cudaErrorStreamCaptureInvalidated, {}};
  stream.capture->nodes.push_back(std::move(node));
}

void Machine::refuse_in_capture() {
  for (const auto& stream : queues.streams()) {
    if (!stream->capture || stream->capture->mode == cudaStreamCaptureModeRelaxed) continue;
    const bool mine = stream->capture->thread == std::this_thread::get_id();
    if (mine || stream->capture->mode == cudaStreamCaptureModeGlobal) {
      invalidate(*stream, cudaErrorStreamCaptureUnsupported);
    }
  }
}

void invalidate(CUstream_st& stream, cudaError_t error) {
  stream.capture->invalid = true;
  throw Refusal{error, {}};
}

void precede(const std::string& function) {
  std::function<void()> act;
  {
    const std::lock_guard lock(machine_mutex());
    auto& waiting = machine()->to_precede;
    const auto found = waiting.find(function);
    if (found == waiting.end()) return;
    act = std::move(found->second);
    waiting.erase(found);
  }
  act();
}

cudaError_t answer(const std::string& function, const Refusal& refusal) {
  if (!refusal.finding.empty()) machine()->findings.push_back(fmt::format("{}: {}", function, refusal.finding));
  if (refusal.error != cudaSuccess) Machine::last_error() = refusal.error;
  return refusal.error;
}

void start(const Settings& settings) {
  const std::lock_guard lock(machine_mutex());
  name_faults(nullptr);
  machine() = std::make_unique<Machine>(settings);
  name_faults(&machine()->memory);
  Machine::gpu() = 0;
  Machine::last_error() = cudaSuccess;
}

void change_order(Order order, std::uint64_t seed) {
  const std::lock_guard lock(machine_mutex());
  machine()->queues.change_order(order, seed);
}

void finish_all() {
  call("the end of all work", [](Machine& here) {
    for (const auto& stream : here.queues.streams()) here.queues.finish(*stream);
  });
}

std::vector<std::string> take_findings() {
  const std::lock_guard lock(machine_mutex());
  return std::exchange(machine()->findings, {});
}

std::vector<std::string> leftovers() {
  const std::lock_guard lock(machine_mutex());
  const Machine& here = *machine();
  std::vector<std::string> left;
  count(left, here.queues.streams(), "streams");
  count(left, here.events, "events");
  count(left, here.graphs, "graphs");
  count(left, here.executables, "executable graphs");
  if (here.memory.reservations() > 0) left.push_back(fmt::format("{} reservations", here.memory.reservations()));
  return left;
}

void fail_next(const std::string& function, cudaError_t error) {
  const std::lock_guard lock(machine_mutex());
  machine()->to_fail[function] = error;
}

void before_next(const std::string& function, std::function<void()> act) {
  const std::lock_guard lock(machine_mutex());
  machine()->to_precede[function] = std::move(act);
}

int calls(const std::string& function) {
  const std::lock_guard lock(machine_mutex());
  return machine()->calls[function];
}

}  // namespace dtrain::testing::cuda_runtime
