#include "checked_training.hpp"

#include <cstdlib>

namespace dtrain::world {
namespace {

constexpr std::uint32_t kQuickSeeds = 40;

}  // namespace

CheckedJob::CheckedJob(CheckedTraining& training, const std::vector<std::string>& hosts, const elastic::Policy& policy,
                       SimOptions options)
    : training_(training),
      job_(
          hosts, policy,
          [this](elastic::Membership& membership, const WorkerFacts& worker) {
            return training_.train(membership, worker);
          },
          std::move(options)) {}

std::string CheckedJob::run(const std::function<void(SimJob&)>& act) {
  const elastic::Finish finish = job_.run(act);
  const std::string wrong =
      finish.exit_code == ExitCode::ok ? training_.verify() : "the job ended otherwise: " + finish.reason;
  return wrong.empty() ? wrong : wrong + "\n" + job_.last_events();
}

std::uint32_t seeds() {
  const char* text = std::getenv("DTRAIN_WORLD_SEEDS");
  return text ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10)) : kQuickSeeds;
}

bool is_thorough() { return seeds() > kQuickSeeds; }

}  // namespace dtrain::world
