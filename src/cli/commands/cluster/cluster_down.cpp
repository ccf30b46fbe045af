#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/account.hpp>
#include <dtrain/cluster/regions.hpp>
#include <dtrain/cluster/ssh_entries.hpp>
#include <dtrain/cluster/stack.hpp>
#include <dtrain/cluster/up_lease.hpp>

#include "cli/command.hpp"
#include "cluster_cloud.hpp"
#include "keep/stop_job.hpp"

namespace dtrain::cli {
namespace {

struct DownCommand {
  config::ClusterPlace place;
  bool yes = false, delete_storage = false, no_head = false;
  bool others = false;  // it is one of several regions in which something may be
};

void bind(config::OptionSet& set, DownCommand& options) {
  config::bind_cluster(set, options.place);
  set.group("Options");
  config::bind_yes(set, options.yes, "end the machines without asking for confirmation");
  set.add("--delete-storage", options.delete_storage,
          "also delete the file system that `up` created, with all its content")
      .flag_only = true;
  set.add("--no-head", options.no_head,
          "leave dtrain installed, and jobs running, on the machines of a stack that `adopt` took, and do not contact "
          "them")
      .flag_only = true;
}

// The stack of the cluster, and those of its machines that go on with it.
struct Returned {
  std::string stack{};  // empty: `up` made the cluster
  std::vector<std::string> machines{};
};

Json document(const std::string& name, const cluster::DownResult& result, const Returned& returned) {
  Json kept = Json::array(), leftover = Json::array();
  for (const cluster::Kept& one : result.kept) {
    kept.push_back(Json::object({{"file_system", one.file_system}, {"dollars_per_month", one.monthly}}));
  }
  for (const cluster::Leftover& one : result.leftover) {
    leftover.push_back(Json::object({{"kind", one.kind}, {"id", one.id}, {"why", one.why}}));
  }
  return Json::object({{"schema", "dtrain.cluster-down/1"},
                       {"cluster", name},
                       {"instances", result.instances},
                       {"removed", json_texts(result.removed)},
                       {"kept", kept},
                       {"leftover", leftover},
                       {"stack", returned.stack.empty() ? Json() : Json(returned.stack)},
                       {"given_back", json_texts(returned.machines)}});
}

// There was nothing to end or to remove.
bool is_nothing(const cluster::DownResult& result, const Returned& returned) {
  return result.instances == 0 && result.removed.empty() && result.kept.empty() && result.leftover.empty() &&
         returned.stack.empty();
}

// `regions`: where it looked.
void answer(const std::string& name, const std::vector<std::string>& regions, const cluster::DownResult& result,
            const Returned& returned, Reporter& reporter) {
  if (is_nothing(result, returned)) {
    return reporter.answer(
        fmt::format("there is no cluster {} in {}; dtrain cluster list --all-regions shows all that are there", name,
                    join(regions, " or ")));
  }
  if (!returned.machines.empty()) {
    reporter.answer(
        fmt::format("given back: {} of stack {}, which go on and cost money; aws cloudformation delete-stack "
                    "--stack-name {} ends them and all else of the stack",
                    join(returned.machines, ", "), returned.stack, returned.stack));
  }
  for (const cluster::Kept& one : result.kept) {
    reporter.answer(fmt::format("kept: file system {}, ${:.2f} a month; --delete-storage removes it", one.file_system,
                                one.monthly));
  }
  for (const cluster::Leftover& one : result.leftover) {
    reporter.answer(fmt::format("left: {} {}: {}", one.kind, one.id, one.why));
  }
  if (result.leftover.empty()) reporter.answer(fmt::format("cluster {} is gone", name));
}

std::string machines_text(const cluster::Fleet& fleet) {
  std::vector<std::string> names;
  for (const cluster::Node& node : fleet.nodes) {
    if (is_adopted(node)) continue;
    if (node.named()) {
      names.push_back(fmt::format("{} ({})", node.name, node.instance_id));
    } else {
      const bool by_hand = node.launch.empty() && !node.elastic && !fleet.emr;
      names.push_back(node.instance_id + (by_hand ? " (tagged by hand)" : ""));
    }
  }
  if (names.empty()) return "no machines";
  return fmt::format("{}: {}", count_text(names.size(), "machine"), join(names, ", "));
}

std::string storage_text(const DownCommand& options, const cluster::Fleet& fleet, net::AwsCalls& aws) {
  std::vector<std::string> systems;
  try {
    std::vector<cluster::FileSystem> own = cluster::own_file_systems(aws, options.place.name);
    for (cluster::FileSystem& one : cluster::lustre_of(aws, fleet)) own.push_back(std::move(one));
    for (const cluster::FileSystem& system : own) {
      systems.push_back(fmt::format("{}, ${:.2f} a month", system.id, cluster::monthly_price(system)));
    }
  } catch (const RemoteError&) {
    return "; its file systems cannot be read";
  }
  if (systems.empty()) return {};
  return options.delete_storage ? fmt::format("; DELETE file system {} with all its content", join(systems, " and "))
                                : fmt::format("; keep file system {}", join(systems, " and "));
}

std::string stack_text(const cluster::Fleet& fleet) {
  const std::string stack = adopted_stack(fleet);
  if (stack.empty()) return {};
  const auto count = std::ranges::count_if(fleet.nodes, cluster::is_adopted);
  return fmt::format("; give {} back to stack {}, where {} on", count_text(count, "machine"), stack,
                     count == 1 ? "it goes" : "they go");
}

// What an `up` or `down` that was interrupted may have left has no machines, and not all of it is looked for before the
// user agrees.
std::string question_of_nothing(const cluster::Fleet& fleet, net::AwsCalls& aws, const std::string& storage) {
  std::vector<std::string> names;
  for (const cluster::Fleet& one : cluster::read_fleets(aws)) names.push_back(one.name);
  const auto near = nearest_name(fleet.name, names);
  return fmt::format(
      "there is no cluster {0} in {1}; {2} Delete what may be left of {0} all the same{3}?", fleet.name, aws.region(),
      near ? fmt::format("did you mean '{}'?", *near) : "dtrain cluster list --all-regions shows all that are there.",
      storage);
}

std::string question(const DownCommand& options, const cluster::Fleet& fleet, net::AwsCalls& aws) {
  if (!fleet.exists()) return question_of_nothing(fleet, aws, storage_text(options, fleet, aws));
  return fmt::format("cluster {}: end {}; delete its resources{}{}?", options.place.name, machines_text(fleet),
                     stack_text(fleet), storage_text(options, fleet, aws));
}

// A machine that ssh does not reach keeps programs of dtrain, which do nothing without their cluster.
cluster::GivenBack give_back_stack(const DownCommand& options, ClusterCloud& cloud, const cluster::Fleet& fleet,
                                   Reporter& reporter) {
  if (!options.no_head) {
    // Its processes would go on, on machines that cost money, without the programs that know of them.
    if (const cluster::Node* head = fleet.head(); head && head->state == "running") end_jobs_on(fleet, reporter);
    for (const std::string& line : cluster::remove_from_machines(fleet)) {
      reporter.warn("dtrain stays installed on " + line);
    }
  }
  return cluster::give_back(cloud.context(true), fleet);
}

// FSx has no network of its own: what dtrain made of it is in the security group, which `down` deletes.
void refuse_kept_lustre(const DownCommand& options, ClusterCloud& cloud, const cluster::Fleet& fleet) {
  if (options.delete_storage) return;
  for (const cluster::FileSystem& one : cluster::lustre_of(cloud.aws(), fleet)) {
    throw UsageError(
        fmt::format("file system {} of FSx for Lustre is in the network of cluster {}, and goes with it", one.id,
                    fleet.name),
        fmt::format("give --delete-storage, which deletes all its content; or end the machines alone by dtrain cluster "
                    "stop {}: the file system then costs ${:.2f} a month",
                    fleet.name, cluster::monthly_price(one)));
  }
}

// Whether no node has ever written to what an interrupted `up` left.
bool leaves_empty_storage(ClusterCloud& cloud, const cluster::Fleet& fleet) {
  return cluster::is_only_begun(fleet) && cluster::has_empty_storage(cloud.aws(), fleet);
}

// The other `up` may start machines after this command has ended.
void warn_of_other_up(ClusterCloud& cloud, const cluster::Fleet& fleet, Reporter& reporter) {
  const cluster::UnixTime now = cluster::aws_time(cloud.aws());
  const auto other = cluster::lease_of_other_up(fleet, cluster::up_holder(::getpid()), now);
  if (!other) return;
  reporter.warn(fmt::format(
      "another `up` is at work on cluster {0}: its last sign of life is {1} s old. What it makes after this "
      "command stays: interrupt it first, or run dtrain cluster down {0} again after its end",
      fleet.name, std::max<std::int64_t>((now - other->at).count(), 0)));
}

// What is in one region. Returns its name.
std::string end_in(const DownCommand& options, Reporter& reporter, Returned& returned, cluster::DownResult& all) {
  ClusterCloud cloud(options.place, reporter);
  const cluster::Fleet fleet = cluster::read_fleet(cloud.aws(), options.place.name);
  refuse_kept_lustre(options, cloud, fleet);
  require_running_machines(fleet);
  warn_of_other_up(cloud, fleet, reporter);
  if (!options.yes) require_consent(false, question(options, fleet, cloud.aws()), reporter);
  cluster::DownResult result;
  if (const std::string stack = adopted_stack(fleet); !stack.empty()) {
    returned.stack = stack;
    cluster::GivenBack given = give_back_stack(options, cloud, fleet, reporter);
    returned.machines = std::move(given.machines);
    result.leftover = std::move(given.leftover);
  }
  // The group's tags say how the rest is given back.
  if (result.leftover.empty()) {
    const bool deletes = options.delete_storage || (options.others && leaves_empty_storage(cloud, fleet));
    result = cluster::bring_down(cloud.context(true), {.name = options.place.name}, deletes);
  }
  all.instances += result.instances;
  const auto append = [](auto& to, auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  append(all.removed, result.removed);
  append(all.kept, result.kept);
  append(all.leftover, result.leftover);
  all.saw_all = all.saw_all && result.saw_all;
  return cloud.aws().region();
}

net::AwsSettings usual_settings(const config::ClusterPlace& place) {
  net::AwsSettings settings;
  settings.profile = place.profile;
  return settings;
}

struct Regions {
  std::vector<std::string> to_clear;  // one empty name: the region is to be found
  bool refused = false;               // one that is remembered lets the user do nothing there
};

// The remembered regions, which may have what an interrupted `up` left; and of all, the first one that has a whole
// cluster: the one that other commands take. A second cluster of the name is ended only where the user names its
// region. Throws RemoteError where one refuses the user and none of the others has anything.
Regions remembered_to_clear(const DownCommand& options, Reporter& reporter) {
  const std::string& name = options.place.name;
  const std::vector<std::string> remembered = cluster::remembered_regions(name);
  Regions regions;
  std::string whole, refusal;
  bool has_any = false;
  for (const std::string& region : cluster::regions_to_ask(name, usual_settings(options.place))) {
    const bool is_remembered = std::ranges::find(remembered, region) != remembered.end();
    config::ClusterPlace place = options.place;
    place.region = region;
    cluster::Fleet fleet;
    try {
      fleet = cluster::read_fleet(ClusterCloud(place, reporter).aws(), name);
    } catch (const net::AwsError& problem) {
      if (!cluster::refuses_user(problem)) throw;
      refusal = fmt::format("{} cannot be asked: {}", region, problem.what());
      reporter.note(refusal);
      regions.refused = regions.refused || is_remembered;
      continue;
    }
    has_any = has_any || fleet.exists();
    if (!fleet.exists() || cluster::is_only_begun(fleet)) {
      if (is_remembered) regions.to_clear.push_back(region);
    } else if (whole.empty()) {
      whole = region;
      regions.to_clear.push_back(region);
    } else {
      reporter.note(
          fmt::format("the cluster {0} in {1} stays; dtrain cluster down {0} --region {1} ends it", name, region));
    }
  }
  if (!refusal.empty() && !has_any) {
    throw RemoteError(refusal, fmt::format("the regions are those of ~/.dtrain/clusters/{}/regions.json", name));
  }
  return regions;
}

// An `up` that was interrupted between regions may have left something in any of them.
Regions regions_of(const DownCommand& options, Reporter& reporter) {
  const std::vector<std::string> named = cluster::regions_in(options.place.region);
  if (named.size() > 1) return {.to_clear = named};
  const bool several = named.empty() && cluster::remembered_regions(options.place.name).size() > 1;
  return several ? remembered_to_clear(options, reporter) : Regions{.to_clear = {options.place.region}};
}

// Those of `done` are remembered no longer, unless something stays there.
void forget_regions(const std::string& name, const std::vector<std::string>& done,
                    const std::vector<std::string>& unfinished) {
  const std::vector<std::string> before = cluster::remembered_regions(name);
  const auto is_in = [](const std::vector<std::string>& list, const std::string& one) {
    return std::ranges::find(list, one) != list.end();
  };
  std::vector<std::string> after;
  for (const std::string& region : before) {
    if (!is_in(done, region) || is_in(unfinished, region)) after.push_back(region);
  }
  if (after != before) cluster::remember_regions(name, after);
}

// Why something of the cluster may be in a region where nothing was found; empty: it is surely gone.
std::string doubt_about(const DownCommand& options, const std::string& region, bool saw_all, Reporter& reporter) try {
  if (!saw_all) return "these keys may not read EFS or IAM, which may have something of it";
  const std::string made_in = cluster::remembered_account(options.place.name, region);
  if (made_in.empty()) return "nothing says in which account it was made";
  config::ClusterPlace place = options.place;
  place.region = region;
  const std::string own = cluster::account_number(ClusterCloud(place, reporter).aws());
  if (own == made_in) return {};
  return fmt::format("it was made in account {}, and these keys are of account {}", made_in, own);
} catch (const RemoteError& problem) {
  return fmt::format("nothing says of which account these keys are: {}", problem.what());
}

// Regions in which nothing was found are remembered no longer where that is certain.
void forget_empty_regions(const DownCommand& options, const std::vector<std::string>& regions, bool saw_all,
                          Reporter& reporter) {
  const std::string& name = options.place.name;
  std::vector<std::string> empty;
  for (const std::string& region : cluster::remembered_regions(name)) {
    if (std::ranges::find(regions, region) == regions.end()) continue;
    const std::string doubt = doubt_about(options, region, saw_all, reporter);
    if (doubt.empty()) {
      empty.push_back(region);
    } else {
      reporter.note(
          fmt::format("{} stays remembered for cluster {}: {}; if it is gone, delete "
                      "~/.dtrain/clusters/{}/regions.json",
                      region, name, doubt, name));
    }
  }
  forget_regions(name, empty, {});
}

ExitCode end(const DownCommand& options, Reporter& reporter) {
  cluster::check_cluster_name(options.place.name);
  Returned returned;
  cluster::DownResult result;
  std::vector<std::string> done, unfinished;  // regions; those in which something stays
  const Regions regions = regions_of(options, reporter);
  // Where none is named, all of these are asked for the cluster. There may be none to clear: all refuse the user.
  std::vector<std::string> asked = regions.to_clear;
  if (!asked.empty() && asked.front().empty())
    asked = cluster::regions_to_ask(options.place.name, usual_settings(options.place));
  for (const std::string& region : regions.to_clear) {
    const std::size_t before = result.kept.size() + result.leftover.size();
    DownCommand here = options;
    here.place.region = region;
    here.others = regions.to_clear.size() > 1;
    if (here.others) reporter.note(fmt::format("cluster {} in {}:", options.place.name, region));
    done.push_back(end_in(here, reporter, returned, result));
    if (result.kept.size() + result.leftover.size() > before) unfinished.push_back(done.back());
  }
  if (returned.stack.empty() || result.leftover.empty()) cluster::remove_ssh_entries(options.place.name, reporter);
  if (is_nothing(result, returned)) {
    forget_empty_regions(options, done, result.saw_all, reporter);
  } else if (result.instances > 0 || !result.removed.empty() || !returned.stack.empty()) {
    forget_regions(options.place.name, done, unfinished);
  }
  if (reporter.json()) {
    reporter.answer_json(document(options.place.name, result, returned));
  } else {
    answer(options.place.name, asked.empty() ? done : asked, result, returned, reporter);
  }
  return result.leftover.empty() && !regions.refused ? ExitCode::ok : ExitCode::partly_done;
}

ExitCode act(const DownCommand& options, const config::OptionSet&, Reporter& reporter) {
  return change_cluster(options.place, "run the same command again: it ends and removes what is left",
                        [&] { return end(options, reporter); });
}

}  // namespace

std::unique_ptr<Command> make_cluster_down() {
  auto command =
      make_command<DownCommand>("cluster down", "end a cluster, and check that none of its resources is left", act);
  command->examples = {"dtrain cluster down demo", "dtrain cluster down demo --delete-storage --yes"};
  command->see_also = {"cluster up", "cluster status"};
  return command;
}

}  // namespace dtrain::cli
