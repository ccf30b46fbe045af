#include <dtrain/cluster/power.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <dtrain/base/clock.hpp>
#include <dtrain/base/text.hpp>

#include "ec2_fields.hpp"
#include "resources.hpp"
#include "terminate.hpp"
#include "wait.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::size_t kMostInstances = 200;  // values of one filter
constexpr std::size_t kMostNamed = 8;
constexpr const char* kPricedDisk = "gp3";                  // what `up` makes
constexpr const char* kBetween = "IncorrectInstanceState";  // EC2's code while a machine starts or stops

std::string ended_by_hand(const Fleet& fleet, const Node& node) {
  if (node.role == Role::head) {
    return fmt::format("dtrain cluster down {} ends the whole cluster, with its disks", fleet.name);
  }
  return fmt::format(
      "dtrain cluster remove {0} {1} --force ends it, with its disk; dtrain cluster up {0} starts another one",
      fleet.name, node.name);
}

// What stopping and starting have in common: machines are asked until all of them are where they are to be.
class PowerChange {
 public:
  PowerChange(const AwsContext& context, Fleet fleet) : context_(context), fleet_(std::move(fleet)) {}
  virtual ~PowerChange() = default;

  PowerResult run() {
    begin();
    bool settled = ask();
    if (context_.wait && !settled) {
      wait_until(context_.patience, fmt::format("the machines of cluster {} are {}", fleet_.name, target()), [&] {
        fleet_ = read_fleet(context_.aws, fleet_.name);
        return ask();
      });
    }
    fleet_ = read_fleet(context_.aws, fleet_.name);
    if (!context_.wait) note_unasked();
    end();
    for (const Node& node : fleet_.nodes) {
      if (asked_.contains(node.instance_id)) result_.changed.push_back(node);
    }
    result_.fleet = std::move(fleet_);
    return std::move(result_);
  }

 protected:
  virtual const char* verb() const = 0;    // "stopping"
  virtual const char* target() const = 0;  // the state that it leads to
  // Whether a machine in this state is still to be asked.
  virtual bool is_to_do(const std::string& state) const = 0;
  virtual void begin() {}
  virtual void end() {}
  // Asks for what has not happened yet. True: nothing is left to wait for.
  virtual bool ask() = 0;
  virtual std::string hint(const Node& node, const net::AwsError& why) const = 0;

  // Returns the machines that are refused for good: one between two states is asked again.
  std::vector<Refused> call(const char* action, const std::vector<std::string>& ids) {
    std::vector<std::string> fresh;
    for (const std::string& id : ids) {
      if (!asked_.contains(id)) fresh.push_back(name_of_node(id));
    }
    if (!fresh.empty()) {
      context_.say(
          fmt::format("{} {}: {}", verb(), count_text(fresh.size(), "machine"), join_first(fresh, kMostNamed, ", ")));
    }
    std::vector<Refused> refused = request_each(context_.aws, action, ids);
    std::set<std::string> taken(ids.begin(), ids.end());
    for (const Refused& one : refused) taken.erase(one.instance_id);
    asked_.insert(taken.begin(), taken.end());
    std::erase_if(refused, [](const Refused& one) { return one.why.facts().code == kBetween; });
    return refused;
  }
  void request(const char* action, const std::vector<std::string>& ids) {
    for (const Refused& one : call(action, ids)) {
      const Node& node = *fleet_.find(one.instance_id);
      refuse(node, one.why.what(), hint(node, one.why));
    }
  }

  void refuse(const Node& node, std::string why, std::string what_to_do) {
    if (!refused_.insert(node.instance_id).second) return;
    result_.unmoved.push_back({node, std::move(why), std::move(what_to_do)});
  }
  bool is_refused(const Node& node) const { return refused_.contains(node.instance_id); }
  bool is_asked(const Node& node) const { return asked_.contains(node.instance_id); }

  const AwsContext& context_;
  Fleet fleet_;

 private:
  std::string name_of_node(const std::string& id) const {
    const Node* node = fleet_.find(id);
    return node && node->named() ? fmt::format("{} ({})", node->name, id) : id;
  }

  void note_unasked() {
    for (const Node& node : fleet_.nodes) {
      if (!is_to_do(node.state) || is_asked(node)) continue;
      refuse(node, fmt::format("it is {}", node.state), "run the same command again");
    }
  }

  std::set<std::string> asked_, refused_;
  PowerResult result_;
};

class Stopping : public PowerChange {
  using PowerChange::PowerChange;

 private:
  const char* verb() const override { return "stopping"; }
  const char* target() const override { return "stopped"; }
  bool is_to_do(const std::string& state) const override { return state == "running" || state == "pending"; }
  // Before the first machine stops, so that no reconciler starts another one in its place.
  void begin() override { note_stopped(context_.aws, fleet_, true); }

  bool ask() override {
    std::vector<std::string> ids;
    bool settled = true;
    for (const Node& node : fleet_.nodes) {
      if (is_refused(node) || node.state == "stopped") continue;
      if (const std::string why = why_not_stopped(node); !why.empty()) {
        refuse(node, why, ended_by_hand(fleet_, node));
        continue;
      }
      settled = false;
      if (node.state == "running") ids.push_back(node.instance_id);
    }
    request("StopInstances", ids);
    return settled;
  }

  std::string hint(const Node& node, const net::AwsError& why) const override {
    if (why.facts().problem != net::AwsProblem::guarded) return ended_by_hand(fleet_, node);
    return fmt::format(
        "aws ec2 modify-instance-attribute --no-disable-api-stop --region {} --instance-id {} switches its "
        "protection off; then run the same command again",
        context_.aws.region(), node.instance_id);
  }
};

class Starting : public PowerChange {
  using PowerChange::PowerChange;

 private:
  const char* verb() const override { return "starting"; }
  const char* target() const override { return "running"; }
  bool is_to_do(const std::string& state) const override { return state == "stopped" || state == "stopping"; }
  // With its head the cluster runs again; machines that stayed off are those of the user.
  void end() override {
    if (const Node* head = fleet_.head(); head && head->alive()) note_stopped(context_.aws, fleet_, false);
  }

  bool ask() override {
    const Node* head = fleet_.head();
    if (head && head->state == "stopped" && !is_asked(*head)) start_head(*head);
    std::vector<std::string> ids;
    bool settled = true;
    for (const Node& node : fleet_.nodes) {
      if (is_refused(node) || node.state == "running") continue;
      settled = false;
      const bool waits_for_head = head && head->state == "stopping" && &node != head;
      if (node.state == "stopped" && node.role == Role::worker && !waits_for_head) ids.push_back(node.instance_id);
    }
    request("StartInstances", ids);
    return settled;
  }

  void start_head(const Node& head) {
    const std::vector<Refused> refused = call("StartInstances", {head.instance_id});
    if (refused.empty()) return;
    const net::AwsError& why = refused.front().why;
    throw net::AwsError(fmt::format("the head of cluster {}: {}", fleet_.name, why.what()),
                        "nothing was started: run the same command again later", why.facts());
  }

  std::string hint(const Node& node, const net::AwsError&) const override {
    return "run the same command again later, or " + ended_by_hand(fleet_, node);
  }
};

}  // namespace

bool is_stopped(const Fleet& fleet) {
  if (!fleet.group) return false;
  const auto since = fleet.group->tags.find(tag::kStopped);
  return since != fleet.group->tags.end() && !since->second.empty();
}

void note_stopped(net::AwsCalls& aws, Fleet& fleet, bool stopped) {
  if (!fleet.group || is_stopped(fleet) == stopped) return;
  const std::string since = stopped ? utc_text(unix_now()) : "";
  set_tags(aws, {fleet.group->id}, {{tag::kStopped, since}});
  fleet.group->tags[tag::kStopped] = since;
}

std::string why_not_stopped(const Node& node) {
  if (node.market == Market::spot) return "EC2 does not stop spot instances of such a request";
  return node.disk_in_machine ? "its root disk is in the machine itself, so EC2 cannot stop it" : "";
}

PowerResult stop_machines(const AwsContext& context, const Fleet& fleet) { return Stopping(context, fleet).run(); }
PowerResult start_machines(const AwsContext& context, const Fleet& fleet) { return Starting(context, fleet).run(); }

std::string StoppedDisks::text() const {
  if (machines == 0) return {};
  const std::string disks = fmt::format("the disks of {} ({} GB)", count_text(machines, "stopped machine"), gigabytes);
  if (monthly) return fmt::format("{} cost ${:.2f} a month", disks, *monthly);
  return disks + " cost money, at a price that is unknown here";
}

StoppedDisks read_stopped_disks(net::AwsCalls& aws, const Fleet& fleet, const PriceList& prices) {
  StoppedDisks disks;
  std::vector<std::string> ids;
  for (const Node& node : fleet.nodes) {
    if (!node.alive()) ids.push_back(node.instance_id);
  }
  disks.machines = static_cast<int>(ids.size());
  bool known = prices.disk_gigabyte_month.has_value() && prices.region == aws.region();
  for (std::size_t at = 0; at < ids.size(); at += kMostInstances) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(at);
    Fields fields{{"Filter.1.Name", "attachment.instance-id"}};
    add_list(fields, "Filter.1.Value", {begin, begin + std::min<std::ptrdiff_t>(ids.end() - begin, kMostInstances)});
    for (const net::Element& one : aws.query_all(net::kEc2, "DescribeVolumes", fields, "volumeSet")) {
      disks.gigabytes += static_cast<int>(parse_integer(one.value("size")).value_or(0));
      known = known && one.value("volumeType") == kPricedDisk;
    }
  }
  if (known && disks.gigabytes > 0) disks.monthly = disks.gigabytes * *prices.disk_gigabyte_month;
  return disks;
}

std::vector<std::string> types_with_local_disks(net::AwsCalls& aws, const Fleet& fleet) {
  std::set<std::string> names;
  for (const Node& node : fleet.nodes) names.insert(node.type);
  std::vector<std::string> found;
  try {
    for (const auto& [name, type] : read_types(aws, {names.begin(), names.end()})) {
      if (type.local_disks) found.push_back(name);
    }
  } catch (const net::AwsError&) {
    return {};  // it is only advice
  }
  return found;
}

}  // namespace dtrain::cluster
