#include "queues.hpp"

#include "faults.hpp"
#include "refusal.hpp"

namespace dtrain::testing::cuda_runtime {
namespace {

// Memory of GPUs can be touched while this lives.
class Opened {
 public:
  explicit Opened(const Memory& memory) : memory_(memory) { memory_.open_gpus(true); }
  ~Opened() { memory_.open_gpus(false); }
  Opened(const Opened&) = delete;

 private:
  const Memory& memory_;
};

bool can_step(const CUstream_st& stream) {
  return !stream.queue.empty() && (!stream.queue.front().after || stream.queue.front().after->reached);
}

}  // namespace

cudaStream_t Queues::add(int gpu) {
  streams_.push_back(std::make_unique<CUstream_st>());
  streams_.back()->gpu = gpu;
  return streams_.back().get();
}

void Queues::push(CUstream_st& stream, Operation operation) {
  stream.queue.push_back(std::move(operation));
  if (order_ == Order::as_asked) {
    const Opened opened(memory_);
    for (auto some = ready(); !some.empty(); some = ready()) step(*some.front());
  } else if (order_ == Order::at_random && draw(4) == 0) {
    const Opened opened(memory_);
    for (std::uint64_t steps = draw(8); steps > 0; --steps) {
      const std::vector<CUstream_st*> some = ready();
      if (some.empty()) return;
      step(*some[draw(some.size())]);
    }
  }
}

void Queues::finish(CUstream_st& stream) {
  run_until(stream, [&] { return stream.queue.empty(); });
}

void Queues::reach(const Mark& mark) {
  run_until(*mark.stream, [&] { return mark.reached; });
}

template <typename Done>
void Queues::run_until(const CUstream_st& wanted, Done done) {
  const Opened opened(memory_);
  while (!done()) {
    CUstream_st* const next = choose(wanted);
    if (!next) throw Refusal{cudaErrorUnknown, "what is waited for never comes"};
    step(*next);
  }
}

void Queues::go_on_a_little(const CUstream_st& stream) {
  const Opened opened(memory_);
  if (CUstream_st* const next = choose(stream)) step(*next);
}

CUstream_st* Queues::choose(const CUstream_st& wanted) {
  if (order_ == Order::at_random) {
    const std::vector<CUstream_st*> some = ready();
    return some.empty() ? nullptr : some[draw(some.size())];
  }
  if (order_ == Order::others_first) {
    const std::vector<CUstream_st*> others = ready(&wanted);
    if (!others.empty()) return others.back();
  }
  return needed_for(wanted);
}

// The stream itself, or the one that it waits for, or the one that that one waits for.
CUstream_st* Queues::needed_for(const CUstream_st& wanted) const {
  const CUstream_st* stream = &wanted;
  for (std::size_t hops = 0; hops <= streams_.size() && !stream->queue.empty(); ++hops) {
    if (can_step(*stream)) return const_cast<CUstream_st*>(stream);
    stream = stream->queue.front().after->stream;
  }
  return nullptr;
}

std::vector<CUstream_st*> Queues::ready(const CUstream_st* but) const {
  std::vector<CUstream_st*> some;
  for (const auto& stream : streams_) {
    if (stream.get() != but && can_step(*stream)) some.push_back(stream.get());
  }
  return some;
}

void Queues::step(CUstream_st& stream) {
  Operation& first = stream.queue.front();
  if (!first.turns.empty()) {
    const Doing doing(first.name);
    first.turns.front()();
    first.turns.erase(first.turns.begin());
  }
  if (first.turns.empty()) stream.queue.pop_front();
}

// splitmix64
std::uint64_t Queues::draw(std::uint64_t below) {
  random_ += 0x9e3779b97f4a7c15u;
  std::uint64_t z = random_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) % below;
}

}  // namespace dtrain::testing::cuda_runtime
