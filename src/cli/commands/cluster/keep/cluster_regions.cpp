#include "cluster_regions.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/regions.hpp>
#include <dtrain/cluster/up_lease.hpp>
#include <dtrain/launcher/program_files.hpp>

namespace dtrain::cli {
namespace {

config::ClusterPlace place_in(const Asked& asked, const std::string& region) {
  config::ClusterPlace place = asked.place;
  place.region = region;
  return place;
}

// What is there, without what is wanted.
Candidate look_at(const Asked& asked, const std::string& region, Reporter& reporter) {
  Candidate one{
      .cloud = std::make_unique<ClusterCloud>(place_in(asked, region), reporter, ClusterCloud::Scope::made_cluster)};
  one.fleet = cluster::read_fleet(one.cloud->aws(), asked.place.name);
  return one;
}

// nullopt: the region refuses the user.
std::optional<Candidate> look_if_allowed(const Asked& asked, const std::string& region, Reporter& reporter) {
  try {
    return look_at(asked, region, reporter);
  } catch (const net::AwsError& problem) {
    if (!cluster::refuses_user(problem)) throw;
    reporter.note(fmt::format("{} cannot be asked: {}", region, problem.what()));
    return std::nullopt;
  }
}

void plan_in(Candidate& one, const Asked& asked, const cluster::Spec& spec) {
  one.request = cluster_request(asked.place.name, spec, asked.set, one.fleet);
  cluster::check_spec(one.request.spec);
  one.account = cluster::read_account(one.cloud->aws(), one.request.spec, one.request.name);
  cluster::check_request(one.request, one.account);
  one.plan = cluster::plan_up(one.request.spec, one.request.options, one.account, one.fleet);
}

bool is_there(const Candidate& one) { return one.fleet.exists() && !cluster::is_only_begun(one.fleet); }

// The one of them that has the cluster; nullptr: none. Throws UsageError where several do.
Candidate* find_complete(std::vector<Candidate>& all, const std::string& name) {
  Candidate* found = nullptr;
  for (Candidate& one : all) {
    if (!is_there(one)) continue;
    if (found) {
      throw UsageError(fmt::format("there is a cluster {} in {} and in {}", name, found->cloud->aws().region(),
                                   one.cloud->aws().region()),
                       "give setting 'region' with the one that you mean");
    }
    found = &one;
  }
  return found;
}

bool is_in(const std::vector<std::string>& regions, const std::string& region) {
  return std::ranges::find(regions, region) != regions.end();
}

// The file of an `up` that was interrupted names several regions: whatever is in another one than the first of `order`
// goes, a role too, which no group tells of. Throws UsageError for a cluster in a region that the user
// does not name.
void add_remains(const Asked& asked, const std::vector<std::string>& named, RegionOrder& order, Reporter& reporter) {
  const std::vector<std::string> remembered = cluster::remembered_regions(asked.place.name);
  for (const std::string& region : remembered) {
    if (is_in(order.to_clear, region) || order.tried.front().region() == region) continue;
    bool is_left = remembered.size() > 1;
    if (!is_in(named, region)) {
      const std::optional<Candidate> seen = look_if_allowed(asked, region, reporter);
      if (!seen) continue;
      const Candidate& there = *seen;
      if (is_there(there)) {
        throw UsageError(fmt::format("there is a cluster {} in {}", asked.place.name, region),
                         fmt::format("add it to setting 'region', or dtrain cluster down {} setting 'region' {} first",
                                     asked.place.name, region));
      }
      is_left = is_left || cluster::is_only_begun(there.fleet);
    }
    if (is_left) order.to_clear.push_back(region);
  }
}

RegionOrder one_region(const Asked& asked, Candidate one, Reporter& reporter) {
  RegionOrder order{.spec = spec_of_up(asked.spec, asked.set, one.fleet, reporter)};
  plan_in(one, asked, order.spec);
  order.tried.push_back(std::move(one));
  return order;
}

// The first of these is gone on with where an `up` began there; what others have of it goes.
void put_begun_first(std::vector<Candidate>& all, RegionOrder& order) {
  std::ranges::stable_partition(all, [](const Candidate& one) { return cluster::is_only_begun(one.fleet); });
  for (std::size_t at = 1; at < all.size() && cluster::is_only_begun(all[at].fleet); ++at) {
    order.to_clear.push_back(all[at].cloud->aws().region());
  }
}

// What an `up` with other options began, or one in a region that is not gone on with, is removed before.
void plan_with_what_is_there(Candidate& one, const Asked& asked, RegionOrder& order) {
  const std::string region = one.cloud->aws().region();
  if (!is_in(order.to_clear, region)) {
    try {
      return plan_in(one, asked, order.spec);
    } catch (const UsageError&) {
      if (!one.fleet.exists()) throw;
      order.to_clear.push_back(region);
    }
  }
  one.left = std::exchange(one.fleet, {.name = asked.place.name});
  plan_in(one, asked, order.spec);
}

// The user may have been asked for long: what is there now counts.
void clear_region(const Asked& asked, const std::string& region, Reporter& reporter) {
  ClusterCloud cloud(place_in(asked, region), reporter);
  const cluster::Fleet left = cluster::read_fleet(cloud.aws(), asked.place.name);
  if (left.exists() && !cluster::is_only_begun(left)) {
    throw UsageError(fmt::format("there is a cluster {} in {} by now", left.name, region),
                     "run the same command again");
  }
  cluster::refuse_other_up(left, region, cluster::up_holder(::getpid()), cluster::aws_time(cloud.aws()));
  reporter.note(fmt::format("removing what an interrupted `up` of cluster {} left in {}", asked.place.name, region));
  const bool deletes = cluster::has_empty_storage(cloud.aws(), left);
  const cluster::DownResult result = cluster::bring_down(cloud.context(true), {.name = asked.place.name}, deletes);
  for (const cluster::Kept& one : result.kept) {
    reporter.warn(
        fmt::format("file system {0} stays in {1} and costs money: `dtrain cluster down {2} --region {1} "
                    "--delete-storage` removes it",
                    one.file_system, region, asked.place.name));
  }
  if (result.leftover.empty()) return;
  const cluster::Leftover& first = result.leftover.front();
  throw RemoteError(fmt::format("{} {} in {} could not be removed: {}", first.kind, first.id, region, first.why),
                    fmt::format("then dtrain cluster down {} --region {}", asked.place.name, region));
}

std::string attempts_text(const cluster::Launched& launched) {
  std::vector<std::string> texts;
  for (const cluster::Attempt& one : launched.attempts) {
    texts.push_back(fmt::format("{}: {}", one.pool.text(), one.code.empty() ? "too few" : one.code));
  }
  return texts.empty() ? "no capacity" : join_first(texts, 4, ", ");
}

// The nodes get the files of this program. They are not asked, as they are not there yet.
void warn_without_bundle(Reporter& reporter) {
  if (!launcher::bundle_of(own_command()).empty()) return;
  reporter.warn(
      "this dtrain is no bundle: nodes cannot start it where they lack its libraries, or the processor for which it "
      "was built. packaging/bundle.sh makes a bundle, which starts on all of them; run the dtrain in it");
}

bool may_have_something(const Asked& asked, const std::string& region, Reporter& reporter) {
  try {
    const Candidate there = look_at(asked, region, reporter);
    return there.fleet.exists() || !cluster::own_file_systems(there.cloud->aws(), asked.place.name).empty();
  } catch (const RemoteError&) {
    return true;
  }
}

// Remembered regions that an `up` in `regions` does not look at, and that may have something of the cluster. Of
// several, an `up` was interrupted, which may have left a role too: only `down` forgets them.
std::vector<std::string> others_with_something(const Asked& asked, const std::vector<std::string>& regions,
                                               Reporter& reporter) {
  const std::vector<std::string> remembered = cluster::remembered_regions(asked.place.name);
  std::vector<std::string> others;
  for (const std::string& region : remembered) {
    if (is_in(regions, region)) continue;
    if (remembered.size() > 1 || may_have_something(asked, region, reporter)) others.push_back(region);
  }
  return others;
}

// Beside `others`, which stay remembered.
void remember(const Asked& asked, std::vector<std::string> regions, const std::vector<std::string>& others,
              const Candidate& made) {
  regions.insert(regions.end(), others.begin(), others.end());
  cluster::remember_regions(asked.place.name, regions, made.account.number);
}

std::vector<std::string> regions_of_order(const RegionOrder& order) {
  std::vector<std::string> regions = order.to_clear;
  for (const Candidate& one : order.tried) {
    if (!is_in(regions, one.region())) regions.push_back(one.region());
  }
  return regions;
}

// Later commands find the cluster by this file, whatever the usual region is. The cluster can be made without it.
void remember_or_warn(const Asked& asked, const Candidate& one, Reporter& reporter) {
  const std::string& region = one.region();
  try {
    remember(asked, {region}, others_with_something(asked, {region}, reporter), one);
  } catch (const Stopped&) {
    throw;
  } catch (const std::exception& problem) {
    reporter.warn(fmt::format("give --region {} to later commands: {}", region, problem.what()));
  }
}

// Before it is made: an interrupted `up` may leave machines.
cluster::UpResult make_in_one(Candidate& one, const Asked& asked, Reporter& reporter,
                              const std::function<cluster::UpResult(Candidate&)>& make) {
  const std::string& name = asked.place.name;
  const std::vector<std::string> before = cluster::remembered_regions(name);
  remember_or_warn(asked, one, reporter);
  try {
    return make(one);
  } catch (const cluster::NoCapacity& problem) {
    // Another `up` of this name may have made the cluster there meanwhile.
    std::ignore = attempt([&] {
      if (problem.left().empty() && !may_have_something(asked, one.region(), reporter)) {
        cluster::remember_regions(name, before);
      }
    });
    throw;
  }
}

}  // namespace

RegionOrder order_regions(const Asked& asked, Reporter& reporter) {
  warn_without_bundle(reporter);
  const std::vector<std::string> regions = cluster::regions_in(asked.place.region);
  if (regions.size() < 2) return one_region(asked, look_at(asked, asked.place.region, reporter), reporter);
  cluster::refuse_ties(asked.spec);
  std::vector<Candidate> all;
  for (const std::string& region : regions) all.push_back(look_at(asked, region, reporter));
  RegionOrder order;
  if (Candidate* const there = find_complete(all, asked.place.name)) {
    for (const Candidate& one : all) {
      if (cluster::is_only_begun(one.fleet)) order.to_clear.push_back(one.cloud->aws().region());
    }
    RegionOrder alone = one_region(asked, std::move(*there), reporter);
    alone.to_clear = std::move(order.to_clear);
    add_remains(asked, regions, alone, reporter);
    return alone;
  }
  put_begun_first(all, order);
  order.spec = spec_of_up(asked.spec, asked.set, all.front().fleet, reporter);
  for (Candidate& one : all) {
    const std::string region = one.cloud->aws().region();
    try {
      plan_with_what_is_there(one, asked, order);
      order.tried.push_back(std::move(one));
    } catch (const UsageError& problem) {
      if (order.left_out.size() + 1 == all.size()) throw;  // none can have it
      order.left_out.emplace_back(region, problem.what());
    }
  }
  add_remains(asked, regions, order, reporter);
  for (const Candidate& one : order.tried) {
    cluster::refuse_ties(one.request.spec);
    cluster::refuse_kept_storage(one.account, one.request.spec, one.left.exists() ? one.left : one.fleet);
  }
  return order;
}

cluster::Cost highest_cost(const RegionOrder& order) {
  const auto highest =
      std::ranges::max_element(order.tried, {}, [](const Candidate& one) { return one.plan.cost.hourly; });
  return highest->plan.cost;
}

Json regions_json(const RegionOrder& order) {
  Json regions = Json::array();
  for (const Candidate& one : order.tried) {
    regions.push_back(Json::object({{"region", one.region()},
                                    {"dollars_per_hour", hourly_json(one.plan.cost)},
                                    {"unpriced", unpriced_json(one.plan.cost)},
                                    {"why_not", Json()}}));
  }
  for (const auto& [region, why] : order.left_out) {
    regions.push_back(Json::object(
        {{"region", region}, {"dollars_per_hour", Json()}, {"unpriced", Json::array()}, {"why_not", why}}));
  }
  return regions;
}

void answer_regions(const RegionOrder& order, Reporter& reporter) {
  if (order.is_one()) return;
  std::vector<std::string> texts;
  for (const Candidate& one : order.tried) {
    texts.push_back(fmt::format("{} ({} an hour)", one.region(), cost_text(one.plan.cost)));
  }
  reporter.note(fmt::format("in this order, while there is no capacity: {}", join(texts, ", ")));
  for (const auto& [region, why] : order.left_out) reporter.note(fmt::format("left out: {}: {}", region, why));
  for (const std::string& region : order.to_clear) {
    reporter.note(fmt::format("to be removed first: what an interrupted `up` left in {}", region));
  }
  if (order.tried.size() > 1) {
    reporter.note(
        "data in S3 stays in the region of its bucket: AWS takes $0.01 to $0.15 for each GB that machines of another "
        "region read");
  }
}

cluster::UpResult make_in_order(RegionOrder& order, const Asked& asked, Reporter& reporter,
                                const std::function<cluster::UpResult(Candidate&)>& make) {
  const std::string& name = asked.place.name;
  if (order.is_one()) return make_in_one(order.tried.front(), asked, reporter, make);
  const std::vector<std::string> others = others_with_something(asked, regions_of_order(order), reporter);
  remember(asked, regions_of_order(order), others, order.tried.front());
  for (const std::string& region : order.to_clear) clear_region(asked, region, reporter);
  std::vector<std::string> why;
  cluster::Launched launched;
  for (std::size_t at = 0; at < order.tried.size(); ++at) {
    Candidate& one = order.tried[at];
    if (at > 0) {
      reporter.note(fmt::format("cluster {}: {} has no capacity for it, now {}", name, order.tried[at - 1].region(),
                                one.region()));
    }
    if (at > 0 || !order.to_clear.empty()) {
      one.fleet = cluster::read_fleet(one.cloud->aws(), name);
      plan_in(one, asked, order.spec);
    }
    one.request.one_of_regions = true;
    one.cloud->begin_again();
    try {
      cluster::UpResult result = make(one);
      remember(asked, {one.region()}, others, one);
      auto& attempts = result.workers.attempts;
      attempts.insert(attempts.begin(), launched.attempts.begin(), launched.attempts.end());
      return result;
    } catch (const cluster::NoCapacity& problem) {
      if (!problem.left().empty() || is_there(one)) throw;
      why.push_back(fmt::format("{}: {}", one.region(), attempts_text(problem.launched())));
      const auto& attempts = problem.launched().attempts;
      launched.attempts.insert(launched.attempts.end(), attempts.begin(), attempts.end());
    }
  }
  remember(asked, {}, others, order.tried.front());
  throw cluster::NoCapacity(fmt::format("cluster {}: no region has the capacity for it ({}); everything that was made "
                                        "for it has been removed",
                                        name, join(why, "; ")),
                            "try later, or allow more: --region A,B,C, --instance-type A,B, --spot prefer, a smaller "
                            "--min-workers",
                            std::move(launched));
}

}  // namespace dtrain::cli
