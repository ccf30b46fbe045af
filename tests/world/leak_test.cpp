// A job whose workers change all the time keeps no descriptor and no thread of those that left.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <ranges>
#include <vector>

#include "checked_toy_training.hpp"

namespace dtrain::world {
namespace {

std::ptrdiff_t entries_of(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

// This process, with workers and coordinator together.
struct Usage {
  std::ptrdiff_t descriptors = entries_of("/proc/self/fd"), threads = entries_of("/proc/self/task");
};

TEST(World, KeepsNothingOfTheWorkersThatLeft) {
  const std::uint64_t changes = is_thorough() ? 500 : 60;
  CheckedToyTraining training({.epochs = 1'000'000, .shard_time = {}});
  CheckedJob job(training, {"a", "b"});
  std::uint64_t generation = 0;
  std::map<bool, std::vector<Usage>> usages;  // by whether there are three workers
  const elastic::Finish finish = job.job().run(
      [&](SimJob& sim) {
        const auto& current = sim.state().current;
        if (!current || !current->stepped || sim.state().change ||
            sim.state().workers.size() != current->members.size())
          return;
        if (current->number == generation) return;
        generation = current->number;
        const bool three = current->members.size() == 3;
        usages[three].emplace_back();
        if (generation > changes) {
          sim.ask(Json::object({{"ask", "stop"}}));
        } else {
          three ? sim.set_hosts({"a", "b"}) : sim.set_hosts({"a", "b", "c"});
        }
      },
      std::chrono::minutes(5));
  EXPECT_EQ(finish.exit_code, ExitCode::resumable) << finish.reason;
  for (const auto& [three, seen] : usages) {
    ASSERT_GE(seen.size(), changes / 4);
    // Numbers vary with workers that are ending; they must not grow.
    EXPECT_LE(std::ranges::min(seen | std::views::drop(seen.size() - 5), {}, &Usage::descriptors).descriptors,
              std::ranges::min(seen | std::views::take(5), {}, &Usage::descriptors).descriptors + 2);
    EXPECT_LE(std::ranges::min(seen | std::views::drop(seen.size() - 5), {}, &Usage::threads).threads,
              std::ranges::min(seen | std::views::take(5), {}, &Usage::threads).threads + 2);
  }
}

}  // namespace
}  // namespace dtrain::world
