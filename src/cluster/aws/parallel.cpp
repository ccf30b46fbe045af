#include "parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

namespace dtrain::cluster {
namespace {

// Services allow bursts of calls, and slow down who makes more.
constexpr std::size_t kAtOnce = 8;

}  // namespace

void do_all(const std::vector<std::function<void()>>& pieces) {
  std::vector<std::exception_ptr> failures(pieces.size());
  std::atomic<std::size_t> next{0};
  const auto serve = [&] {
    for (std::size_t at = next++; at < pieces.size(); at = next++) {
      try {
        pieces[at]();
      } catch (...) {
        failures[at] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::min(kAtOnce, pieces.size()); ++i) threads.emplace_back(serve);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace dtrain::cluster
