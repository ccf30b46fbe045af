#include "forked_ranks.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include <dtrain/base/daemon.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/wait_status.hpp>

namespace dtrain::bench {
namespace {

constexpr std::chrono::milliseconds kLook(1);
constexpr std::chrono::seconds kStart(30);
constexpr std::size_t kLongestReason = 1000;

// Memory that stays shared after fork().
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t size)
      : size_(size), data_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) throw Error(fmt::format("cannot share {} bytes: {}", size, std::strerror(errno)));
  }
  ~SharedMemory() { ::munmap(data_, size_); }
  SharedMemory(const SharedMemory&) = delete;
  template <typename T>
  std::span<T> part(std::size_t offset, std::size_t count) {
    return {reinterpret_cast<T*>(static_cast<char*>(data_) + offset), count};
  }

 private:
  std::size_t size_;
  void* data_;
};

// The running children; the destructor kills those that were not waited for.
class Children {
 public:
  ~Children() {
    for (const pid_t child : pids_) ::kill(child, SIGKILL);
    for (const pid_t child : pids_) wait_for_end(child);
  }
  void add(pid_t child) { pids_.push_back(child); }

  // Returns true when all have ended well, and false as soon as one has failed.
  bool wait(std::chrono::steady_clock::time_point deadline) {
    while (!pids_.empty() && std::chrono::steady_clock::now() < deadline) {
      for (std::size_t i = pids_.size(); i-- > 0;) {
        if (!has_ended(pids_[i])) continue;
        const ProcessEnd end = wait_for_end(pids_[i]);
        pids_.erase(pids_.begin() + static_cast<std::ptrdiff_t>(i));
        if (!end.ok()) return false;
      }
      std::this_thread::sleep_for(kLook);
    }
    return pids_.empty();
  }

 private:
  std::vector<pid_t> pids_;
};

// The child ends with its parent, also one that was killed.
void end_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it went before the line above
}

// Runs in the child, and never returns to the parent's code.
[[noreturn]] void run_child(const std::function<void(ForkedRank&)>& work, ForkedRank rank, std::span<char> reason) {
  int code = 0;
  try {
    work(rank);
  } catch (const std::exception& error) {
    std::strncpy(reason.data(), error.what(), reason.size() - 1);
    code = 1;
  }
  ::_exit(code);
}

}  // namespace

std::unique_ptr<comm::Endpoint> ForkedRank::make_endpoint(comm::MeshPlan& plan, bool by_unix_sockets) {
  auto endpoint = std::make_unique<comm::Endpoint>(comm::EndpointOptions{
      .bind_address = std::string(kLoopback), .secret = secret_, .by_unix_sockets = by_unix_sockets});
  std::atomic_ref<std::uint16_t>{ports_[static_cast<std::size_t>(rank_)]} = endpoint->address().port;
  const auto deadline = std::chrono::steady_clock::now() + kStart;
  for (int peer = 0; peer < ranks_;) {
    const std::uint16_t port = std::atomic_ref<std::uint16_t>{ports_[static_cast<std::size_t>(peer)]};
    if (port != 0) {
      plan.ranks.push_back({std::string(kLoopback), port});
      ++peer;
      continue;
    }
    if (std::chrono::steady_clock::now() > deadline) throw Error(fmt::format("rank {} does not start", peer));
    std::this_thread::sleep_for(kLook);
  }
  plan.rank = rank_;
  return endpoint;
}

std::unique_ptr<comm::Endpoint> ForkedRank::make_plain_endpoint(comm::MeshPlan& plan, comm::Communicator& comm) {
  auto endpoint = std::make_unique<comm::Endpoint>(comm::EndpointOptions{
      .bind_address = std::string(kLoopback), .secret = secret_, .plain_data = true, .by_unix_sockets = false});
  const std::uint16_t mine = endpoint->address().port;
  for (const std::string& port : comm.all_gather(std::as_bytes(std::span(&mine, 1)))) {
    std::uint16_t number = 0;
    std::memcpy(&number, port.data(), sizeof number);
    plan.ranks.push_back({std::string(kLoopback), number});
  }
  plan.rank = rank_;
  return endpoint;
}

std::vector<std::vector<double>> run_forked(int ranks, int numbers, std::chrono::seconds deadline,
                                            const std::function<void(ForkedRank&)>& work) {
  const auto count = static_cast<std::size_t>(ranks), each = static_cast<std::size_t>(numbers);
  const std::size_t numbers_bytes = count * each * sizeof(double), ports_bytes = count * sizeof(std::uint64_t);
  SharedMemory memory(numbers_bytes + ports_bytes + count * kLongestReason);
  const std::span all_numbers = memory.part<double>(0, count * each);
  const std::span reasons = memory.part<char>(numbers_bytes + ports_bytes, count * kLongestReason);
  const std::string secret = unpredictable_bytes(32);
  const pid_t parent = ::getpid();
  {
    Children children;
    for (std::size_t rank = 0; rank < count; ++rank) {
      const pid_t child = fork_process();
      if (child > 0) {
        children.add(child);
        continue;
      }
      end_with(parent);
      run_child(work,
                ForkedRank(static_cast<int>(rank), ranks, secret, all_numbers.subspan(rank * each, each),
                           memory.part<std::uint16_t>(numbers_bytes, count)),
                reasons.subspan(rank * kLongestReason, kLongestReason));
    }
    if (!children.wait(std::chrono::steady_clock::now() + deadline)) {
      for (std::size_t rank = 0; rank < count; ++rank) {
        const char* reason = reasons.data() + rank * kLongestReason;
        if (*reason) throw Error(fmt::format("rank {} of {} failed: {}", rank, ranks, reason));
      }
      throw Error(fmt::format("the {} ranks of the benchmark did not end well within {} s", ranks, deadline.count()));
    }
  }
  std::vector<std::vector<double>> results;
  for (std::size_t rank = 0; rank < count; ++rank) {
    const auto mine = all_numbers.subspan(rank * each, each);
    results.emplace_back(mine.begin(), mine.end());
  }
  return results;
}

}  // namespace dtrain::bench
