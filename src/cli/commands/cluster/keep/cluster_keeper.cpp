#include "cluster_keeper.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <dtrain/base/secret.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/tagged_prices.hpp>

#include "cluster_budget.hpp"
#include "job/spec/process_facts.hpp"

namespace dtrain::cli {
namespace {

// A loss is to be noticed within half a minute, with few calls while nothing happens.
constexpr std::chrono::seconds kEvery{25};
constexpr std::chrono::seconds kInAHurry{3};  // while a worker takes the place of another one
constexpr std::size_t kRandomBytes = 3;
constexpr std::chrono::seconds kToLeave{10};
constexpr std::chrono::seconds kWrongClock{60};

// A process that takes the number of an earlier one must not take its lease as well.
std::string own_name() {
  return fmt::format("{}.{}.{}", job::host_name(), getpid(), to_hex(unpredictable_bytes(kRandomBytes)));
}

}  // namespace

ClusterKeeper::ClusterKeeper(ClusterCloud& cloud, const config::ClusterPlace& place, cluster::ClusterInside& inside,
                             Reporter& reporter)
    : cloud_(cloud),
      place_(place),
      reporter_(reporter),
      healer_(
          cloud.context(false), place.name, own_name(),
          [this](const cluster::Fleet& fleet) { return request_of(fleet); }, inside,
          [&cloud] { return cluster::aws_time(cloud.aws()); }) {}

// What `up` was asked for: options of the watch, such as --heal, are others. And a block of addresses that may log in
// already: a healer leaves the rules for ssh as they are, and need not find out this machine's own address.
cluster::ClusterRequest ClusterKeeper::request_of(const cluster::Fleet& fleet) const {
  cluster::ClusterRequest request = cluster_request(place_.name, {}, config::OptionSet(), fleet);
  if (fleet.group && !fleet.group->ssh_sources.empty()) request.spec.ssh_from = fleet.group->ssh_sources.front();
  return request;
}

ClusterKeeper::~ClusterKeeper() {
  try {
    net::AwsLimits limits;
    limits.until = std::chrono::steady_clock::now() + kToLeave;
    limits.stop_on_signal = false;  // Ctrl-C is how a watch ends
    net::AwsCalls last(cloud_.settings(), limits);
    healer_.leave(last);
  } catch (const std::exception& problem) {
    reporter_.detail(problem.what());  // the lease ends by itself
  }
}

void ClusterKeeper::set_budget(double dollars) {
  const cluster::Fleet fleet = cluster::read_fleet(cloud_.aws(), place_.name);
  require_there(fleet, cloud_.aws());
  BudgetView view = read_budget(cloud_, fleet);
  view.budget = dollars > 0 ? std::optional(dollars) : std::nullopt;
  require_budget(view, {}, cloud_, fleet);
  cluster::write_prices(cloud_.aws(), fleet, cluster::types_of(request_of(fleet).spec), cloud_.prices());
  if (view.budget) reporter_.note(budget_line(view));
  healer_.want_budget(view.budget);
}

void ClusterKeeper::look() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kEvery;
  const cluster::Healer::Look look = healer_.look();
  if (look.hurries) next_ = now + kInAHurry;
  tell(look);
  tell_clock();
}

void ClusterKeeper::tell_clock() {
  const std::chrono::seconds skew = cloud_.aws().clock_skew();
  const bool is_wrong = std::chrono::abs(skew) > kWrongClock;
  if (is_wrong && !told_clock_) {
    reporter_.warn(fmt::format("this machine's clock is {} {} that of AWS, which the cluster is kept by",
                               format_duration(std::chrono::abs(skew)), skew < skew.zero() ? "ahead of" : "behind"));
  }
  told_clock_ = is_wrong;
}

void ClusterKeeper::tell(const cluster::Healer::Look& look) {
  for (const cluster::HealEvent& event : look.events) reporter_.note(event.text);
  std::string words = look.acts ? join(look.waits, "; ") : look.why_not;
  if (words != said_ && !words.empty()) reporter_.note(words);
  said_ = std::move(words);
}

}  // namespace dtrain::cli
