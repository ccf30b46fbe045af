#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <dtrain/base/clock.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/provider.hpp>
#include <dtrain/cluster/regions.hpp>
#include <dtrain/cluster/stack.hpp>
#include <dtrain/cluster/user_data.hpp>
#include <dtrain/cluster/wish.hpp>

namespace dtrain::cluster {
namespace {

class Ec2Provider final : public Provider {
 public:
  explicit Ec2Provider(Fleet fleet) : fleet_(std::move(fleet)) {}

  std::vector<Member> members() override {
    const std::string user = log_in(std::chrono::seconds(30)).user();
    std::vector<Member> all;
    for (const Node& node : fleet_.nodes) all.push_back({node.name, ssh_target(node, user)});
    return all;
  }

  net::SshOptions ssh_options() const override { return cluster_ssh_options(fleet_.name); }

  net::SshSession log_in(std::chrono::seconds patience) const override {
    ClusterHead head(fleet_, patience);
    return std::move(head.session());
  }

  net::SshTarget head_target(const net::SshSession& head) const override {
    return ssh_target(*fleet_.head(), head.user());
  }

  // What the account shows is known here, where the keys are.
  void require_queue(bool down_when_done) const override {
    if (fleet_.on_emr()) {
      throw UsageError(fmt::format("cluster {} is one of Amazon EMR, whose head has no queue of jobs", fleet_.name),
                       "leave setting 'detach' out");
    }
    if (!fleet_.launch_template) {
      throw UsageError(
          fmt::format("cluster {} takes no jobs: it is being removed, or was not made completely", fleet_.name),
          fmt::format("dtrain cluster up {} makes it again", fleet_.name));
    }
    if (down_when_done && std::ranges::any_of(fleet_.nodes, is_adopted)) {
      throw UsageError(
          fmt::format("setting 'down-when-done': machines of cluster {} belong to stack {}, and are not "
                      "dtrain's to end",
                      fleet_.name, adopted_stack(fleet_)),
          fmt::format("leave setting 'down-when-done' out; dtrain cluster down {} gives them back later", fleet_.name));
    }
    const Lease lease = tagged_lease(fleet_);
    if (down_when_done && lease_state(lease, "", unix_now()) == LeaseState::taken) {
      throw UsageError(fmt::format("setting 'down-when-done': {} keeps cluster {}, and would start its machines again",
                                   lease.holder, fleet_.name),
                       "end `dtrain cluster watch --heal` first, or leave setting 'down-when-done' out");
    }
  }

  std::string prepare_head(net::SshSession& session, const Note& note) override {
    ClusterHead head(std::move(session), note);
    const bool is_ready = head.has_program();
    if (is_ready) head.announce(fleet_);
    session = std::move(head.session());
    if (!is_ready) {
      throw UsageError(fmt::format("cluster {} is not ready", fleet_.name),
                       fmt::format("dtrain cluster up {} completes it", fleet_.name));
    }
    return fmt::format(". /etc/profile.d/deeplearning.sh; cd \"${{EFS_MOUNT:-$HOME}}\"; exec {}/bundle/dtrain",
                       kNodeFolder);
  }

 private:
  const Fleet fleet_;
};

}  // namespace

net::AwsCalls calls_for(const std::string& name, const net::AwsSettings& settings, const net::AwsLimits& limits) {
  try {
    return net::AwsCalls(settings, limits);
  } catch (const UsageError& error) {
    throw UsageError(error.what(),
                     fmt::format("{}{}for hosts of your own, `dtrain cluster list` shows the registered clusters, and "
                                 "`dtrain cluster register {} --hosts FILE` registers one",
                                 error.hint(), error.hint().empty() ? "" : "; ", name));
  }
}

std::unique_ptr<Provider> provider_of(Fleet fleet) { return std::make_unique<Ec2Provider>(std::move(fleet)); }

std::unique_ptr<Provider> provider_of(const std::string& name) {
  if (auto cluster = registered(name)) return provider_of(std::move(*cluster));
  std::map<std::string, Fleet> fleets;  // by region
  const auto read = [&](const std::string& region) {
    net::AwsSettings settings;
    settings.region = region;
    net::AwsCalls aws(settings);
    return fleets[region] = read_fleet(aws, name);
  };
  const std::string region =
      answering_region_with(regions_to_ask(name, {}), remembered_regions(name), read, [](const std::string&) {});
  if (!region.empty() && !is_only_begun(fleets[region])) return provider_of(std::move(fleets[region]));
  net::AwsCalls aws = calls_for(name);
  Fleet fleet = read_fleet(aws, name);
  require_there(fleet, aws);
  return provider_of(std::move(fleet));
}

net::SshOptions ssh_options_of(const std::string& name) {
  return registered(name) ? ssh_options_of_registered(name) : cluster_ssh_options(name);
}

}  // namespace dtrain::cluster
