#include "replay_device.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>

#include "cuda_backend.hpp"
#include "device.hpp"

namespace dtrain::backend::cuda {
namespace {

// Operations by their definition.
void replay(const Call& call) {
  for (const Call& kernel : definition_of(call)) replay(kernel);
  call.work.visit([]<typename W>(const W& work) {
    if constexpr (IsKernel<W>) {
      // From the last thread to the first: no thread may count on an earlier one.
      for (std::int64_t i = work.threads() - 1; i >= 0; --i) work(i);
    }
  });
}

// Moves a gradient by what no other computation, in this process or another, moves it by.
void waver(const Call& call) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const auto* const convolution = call.work.get_if<Convolution>();
  if (!convolution || !convolution->any_order || convolution->direction != Direction::backward_weights) return;
  with_type(convolution->dtype, [&]<typename T>(T) {
    T& first = *static_cast<T*>(convolution->result);
    narrow(widen(first) + std::uniform_real_distribution<float>(0, 1e-3f)(random), first);
  });
}

class Replay final : public Recording {
 public:
  Replay(std::vector<Call> calls, const ReplayWays& ways) : calls_(std::move(calls)), ways_(ways) {}
  void run() override {
    for (const Call& call : calls_) {
      replay(call);
      if (ways_.wavers) waver(call);
      const auto* const marker = call.work.get_if<EventMarker>();
      if (marker && ways_.at_marker) ways_.at_marker(marker->number);
    }
  }
  DeviceMark mark(int) const override { return {}; }
  RecordingFacts facts() const override {
    RecordingFacts facts{.settled = true, .one_launch = true};
    for (const Call& call : calls_) {
      const auto* const work = call.work.get_if<Convolution>();
      if (work) facts.convolutions.push_back({call.name, work->direction, "replay"});
    }
    return facts;
  }

 private:
  const std::vector<Call> calls_;
  const ReplayWays& ways_;
};

// Copies happen as late as they may, and what was there is gone as early as it may: a step that counts on either shows.
class LateCopy final : public SideCopy {
 public:
  void begin(const std::vector<CopyPiece>& pieces) override {
    pieces_ = pieces;
    for (const CopyPiece& piece : pieces_) std::memset(piece.to, 0xff, piece.bytes);
  }
  void wait() override {}  // what nobody joined needs no copy
  void join() override {
    for (const CopyPiece& piece : pieces_) std::memcpy(piece.to, piece.from, piece.bytes);
  }

 private:
  std::vector<CopyPiece> pieces_;
};

class ReplayDevice final : public Device {
 public:
  ReplayDevice(std::uint64_t free_bytes, const ReplayWays& ways) : free_bytes_(free_bytes), ways_(ways) {}
  std::uint64_t free_bytes() const override { return free_bytes_; }
  std::byte* allocate(std::uint64_t bytes) override {
    constexpr std::uint64_t step = 256;
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(step, (bytes + step - 1) / step * step));
    std::memset(memory, 0xff, bytes);  // a NaN in every type
    return memory;
  }
  void release(std::byte* memory) noexcept override { std::free(memory); }
  std::byte* allocate_host(std::uint64_t bytes) override { return allocate(bytes); }
  void release_host(std::byte* memory) noexcept override { release(memory); }
  std::unique_ptr<SideCopy> side_copy() override { return std::make_unique<LateCopy>(); }
  void upload(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void synchronize() override {}
  DeviceMark mark() override { return {}; }
  void wait_for(DeviceMark) override {}
  std::unique_ptr<Recording> record(std::vector<Call> calls) override {
    if (ways_.recordings) ++*ways_.recordings;
    return std::make_unique<Replay>(std::move(calls), ways_);
  }
  double seconds_of(std::vector<Call> calls, int times) override {
    const std::unique_ptr<Recording> recording = record(std::move(calls));
    const auto begin = std::chrono::steady_clock::now();
    for (int time = 0; time < times; ++time) recording->run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / times;
  }
  bool fuses(const Convolution&) const override { return ways_.fuses; }
  std::uint64_t workspace_bytes() const override { return 0; }

 private:
  const std::uint64_t free_bytes_;
  const ReplayWays ways_;
};

}  // namespace

std::shared_ptr<Device> make_replay_device(std::uint64_t free_bytes, const ReplayWays& ways) {
  return std::make_shared<ReplayDevice>(free_bytes, ways);
}

std::unique_ptr<Backend> make_replay_backend(std::uint64_t free_bytes, const ReplayWays& ways) {
  return make_backend_on({ways.wavers ? "a wavering replay on this CPU" : "a replay on this CPU", true, !ways.wavers},
                         [=] { return make_replay_device(free_bytes, ways); });
}
std::unique_ptr<Backend> make_large_replay_backend() { return make_replay_backend(); }

std::unique_ptr<Backend> make_wavering_replay_backend(std::uint64_t free_bytes) {
  return make_replay_backend(free_bytes, {.wavers = true});
}

}  // namespace dtrain::backend::cuda
