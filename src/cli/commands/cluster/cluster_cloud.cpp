#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/account.hpp>
#include <dtrain/cluster/provider.hpp>
#include <dtrain/cluster/regions.hpp>
#include <dtrain/launcher/program_archive.hpp>

#include "cluster_cloud.hpp"
#include "config/option_texts.hpp"

namespace dtrain::cli {
namespace {

// Polls of a thousand instances and a throttled account need more tries than a single call.
constexpr int kAttempts = 10;

net::AwsSettings settings_of(const config::ClusterPlace& place) {
  net::AwsSettings settings;
  settings.region = place.region;
  settings.profile = place.profile;
  return settings;
}

net::AwsLimits limits_of(const config::ClusterPlace& place, std::chrono::steady_clock::time_point begin) {
  net::AwsLimits limits;
  limits.until = begin + std::chrono::seconds(place.timeout_seconds);
  if (!net::process_environment()("AWS_MAX_ATTEMPTS")) limits.attempts = kAttempts;
  return limits;
}

// A place without a name is one of no certain cluster.
net::AwsCalls calls_at(const config::ClusterPlace& place, std::chrono::steady_clock::time_point begin) {
  if (place.name.empty()) return net::AwsCalls(settings_of(place), limits_of(place, begin));
  return cluster::calls_for(place.name, settings_of(place), limits_of(place, begin));
}

net::AwsCalls calls_in(const config::ClusterPlace& place, const std::string& region) {
  net::AwsSettings settings = settings_of(place);
  settings.region = region;
  return net::AwsCalls(settings, limits_of(place, std::chrono::steady_clock::now()));
}

// A `down` may have kept a file system there, which the next cluster of this name goes on with.
bool has_storage(const config::ClusterPlace& place, const std::string& region) {
  try {
    net::AwsCalls aws = calls_in(place, region);
    return !cluster::own_file_systems(aws, place.name).empty();
  } catch (const net::AwsError& problem) {
    if (problem.facts().problem != net::AwsProblem::denied) throw;
    return false;
  }
}

// The one of these regions that has the cluster. Where none has a machine, storage may have been kept.
std::string region_of_cluster(const config::ClusterPlace& place, const std::vector<std::string>& regions, bool named,
                              bool may_make, Reporter& reporter) {
  if (regions.size() == 1) return regions.front();
  const auto read = [&](const std::string& region) {
    net::AwsCalls aws = calls_in(place, region);
    return cluster::read_fleet(aws, place.name);
  };
  const auto note = [&](const std::string& line) { reporter.note(line); };
  const std::vector<std::string> remembered = cluster::remembered_regions(place.name);
  const std::string found =
      named ? cluster::region_with(regions, read) : cluster::answering_region_with(regions, remembered, read, note);
  if (found.empty()) {
    if (named) return regions.front();
    if (!may_make) return remembered.front();
    const auto storage = std::ranges::find_if(remembered, [&](const auto& one) { return has_storage(place, one); });
    return storage == remembered.end() ? regions.front() : *storage;
  }
  if (named || found != regions.front()) reporter.note(fmt::format("cluster {} is in {}", place.name, found));
  return found;
}

// The same place, with the one region that has the cluster.
config::ClusterPlace in_its_region(config::ClusterPlace place, ClusterCloud::Scope scope, Reporter& reporter) {
  const bool one_cluster = scope != ClusterCloud::Scope::region;
  if (one_cluster) cluster::check_cluster_name(place.name);
  std::vector<std::string> regions = cluster::regions_in(place.region);
  const bool named = !regions.empty();
  if (!one_cluster && regions.size() > 1) {
    throw UsageError(
        fmt::format("setting 'region' {} names several regions, and this command looks at one", place.region),
        "give one");
  }
  if (one_cluster && !named) regions = cluster::regions_to_ask(place.name, settings_of(place));
  if (regions.empty() || !one_cluster) return place;
  place.region = region_of_cluster(place, regions, named, scope == ClusterCloud::Scope::made_cluster, reporter);
  return place;
}

std::map<std::string, std::string> texts_of(const cluster::Spec& spec) {
  std::map<std::string, std::string> texts;
  const Json changed = config::changed_options(spec);
  for (const auto& [name, text] : changed.as_object()) texts[name] = text.as_string();
  return texts;
}

}  // namespace

ClusterCloud::ClusterCloud(const config::ClusterPlace& place, Reporter& reporter, Scope scope)
    : place_(in_its_region(place, scope, reporter)),
      reporter_(reporter),
      limited_since_(std::chrono::steady_clock::now()),
      begin_(limited_since_),
      aws_(calls_at(place_, begin_)) {
  watch_stop_signals();
  aws_.watch([this](const net::CallRecord& call) { note(call); });
}

ClusterCloud::~ClusterCloud() {
  if (!place_.timing) return;
  int calls = 0;
  for (const auto& [action, counted] : calls_) {
    calls += counted.first;
    reporter_.note(fmt::format("{:<48}{:>6} calls{:>10}", action, counted.first, format_duration(counted.second)));
  }
  reporter_.note(fmt::format("{} calls in {}", calls, format_duration(std::chrono::steady_clock::now() - begin_)));
}

void ClusterCloud::begin_again() {
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::seconds whole(place_.timeout_seconds);
  if (now - limited_since_ < whole / 2) return;
  limited_since_ = now;
  aws_.limit_until(now + whole);
}

void ClusterCloud::note(const net::CallRecord& call) {
  auto& counted = calls_[call.service + " " + call.action];
  ++counted.first;
  counted.second += call.took;
  reporter_.detail(fmt::format("{} {}: {}{}", call.service, call.action, format_duration(call.took),
                               call.problem.empty() ? "" : ", " + call.problem));
}

net::AwsSettings ClusterCloud::settings() const { return settings_of(place_); }

const cluster::PriceList& ClusterCloud::prices() {
  if (!prices_) prices_ = cluster::known_prices(aws_.region());
  return *prices_;
}

void ClusterCloud::warn_of_prices() {
  if (!std::exchange(warned_of_prices_, true)) warn_of_other_region(prices(), aws_, reporter_);
}

cluster::AwsContext ClusterCloud::context(bool wait) {
  return {.aws = aws_,
          .say = [this](const std::string& line) { reporter_.note(line); },
          .wait = wait,
          .patience = std::chrono::seconds(place_.timeout_seconds)};
}

cluster::Spec spec_of_up(const cluster::Spec& asked, const config::OptionSet& set, const cluster::Fleet& fleet,
                         Reporter& reporter) {
  cluster::Spec spec = asked;
  const bool decides = !fleet.group && spec.on == cluster::Service::ec2 && !set.chosen("autostop");
  if (!decides || isatty(STDIN_FILENO)) return spec;
  spec.autostop = cluster::kUnattendedAutostop;
  reporter.note(
      fmt::format("not run from a terminal, so each node ends itself after {} without training or a logged-in "
                  "user; --autostop off keeps it on",
                  config::span_text(spec.autostop)));
  return spec;
}

cluster::ClusterRequest cluster_request(const std::string& name, const cluster::Spec& spec,
                                        const config::OptionSet& set, const cluster::Fleet& fleet) {
  cluster::ClusterRequest request{
      .name = name, .options = fleet.options, .bundle_sha256 = launcher::program_archive().sha256};
  const auto now = texts_of(spec);
  cluster::Spec fresh;
  config::OptionSet known;
  bind(known, fresh);
  for (const config::Option& option : known.options()) {
    const bool said = set.chosen(option.name()) || (option.name() == "image" && set.chosen("ami"));
    if (!said && fleet.group) continue;
    request.options.erase(option.name());
    if (const auto text = now.find(option.name()); text != now.end()) request.options.insert(*text);
  }
  // A later version may have another default.
  if (!fleet.group) request.options.try_emplace("instance-type", worker_types_text(spec));
  Json texts = Json::object();
  for (const auto& [option, text] : request.options) texts[option] = text;
  request.spec = config::options_from<cluster::Spec>(texts);
  // EMR has an image of its own.
  if (request.spec.on == cluster::Service::emr && !request.options.contains("image")) request.spec.image.clear();
  return request;
}

void require_consent(bool yes, const std::string& question, Reporter& reporter) {
  if (yes) return;
  if (!isatty(STDIN_FILENO)) throw UsageError(question, "repeat the command with --yes");
  reporter.note(question + " [y/N]");
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "yes") return;
  throw UsageError("not confirmed: nothing was changed");
}

ExitCode change_cluster(const config::ClusterPlace& place, const std::string& hint,
                        const std::function<ExitCode()>& change) {
  try {
    return change();
  } catch (const Stopped&) {
    throw Interrupted(stop_signal(), fmt::format("cluster {}: interrupted", place.name), hint);
  }
}

}  // namespace dtrain::cli
