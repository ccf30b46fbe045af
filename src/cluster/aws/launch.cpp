#include "launch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/text.hpp>

#include "ec2_fields.hpp"
#include "head_role.hpp"
#include "resources.hpp"
#include "wait.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::size_t kTokenSize = 32;
// Limit of repetitions of a call whose reply was lost. Before each, EC2 is asked whether the call succeeded.
constexpr int kMostReplies = 5;
// How long machines are looked for before a call is repeated, after its first lost reply; twice as long after the next.
constexpr std::chrono::milliseconds kAfterALostReply{500};
// An error of CreateFleet about a fresh resource of the order is repeated so often, with a new client token each.
constexpr int kMostFleets = 12;
// Limit of heads that an interrupted `up` started and that have ended since. EC2 remembers their client tokens for
// longer than it lists them.
constexpr int kMostEndedHeads = 16;
constexpr const char* kEndedByToken = "IdempotentInstanceTerminated";
// An interrupted call of the same order asked for something else with this client token: for another subnet, where the
// one that it chose is full by now.
constexpr const char* kOtherByToken = "IdempotentParameterMismatch";

std::string digest(const std::string& text) { return sha256_hex(bytes_of(text)).substr(0, kTokenSize); }

std::vector<Node> nodes_where(net::AwsCalls& aws, const Fields& fields) {
  std::vector<Node> nodes = read_nodes(aws, fields);
  std::erase_if(nodes, [](const Node& node) { return !node.there(); });
  return nodes;
}

std::vector<Node> nodes_of_launch(net::AwsCalls& aws, const std::string& launch) {
  return nodes_where(aws, filtered({{std::string("tag:") + tag::kLaunch, launch}}));
}

std::chrono::milliseconds until_visible(const AwsContext& context) {
  return std::min<std::chrono::milliseconds>(kUntilVisible, context.patience);
}

// Repeats call() while its reply is lost, until find(whole) finds what it was to create, in the end also a part of it.
// The call has a client token, so that a repetition creates nothing more; where a service ignores the token, the look
// before each repetition protects.
template <typename Call, typename Find>
auto call_once(const AwsContext& context, const Call& call, const Find& find) {
  for (int lost = 1;; ++lost) {
    try {
      return call();
    } catch (const net::AwsError& problem) {
      if (problem.facts().problem != net::AwsProblem::transient) throw;
      const bool is_last = lost > kMostReplies;
      auto there = look_until(is_last ? until_visible(context) : kAfterALostReply * (1 << (lost - 1)),
                              [&] { return find(!is_last); });
      if (there) return std::move(*there);
      if (is_last) throw;
    }
  }
}

// The same for call(fields). What an interrupted call with the same client token has started is taken, though it asked
// for something else; where AWS shows nothing of that, the token of the fields as they are now takes its place.
template <typename Call, typename Find>
auto call_with_token(const AwsContext& context, Fields fields, const Call& call, const Find& find) {
  const auto call_now = [&] { return call(fields); };
  try {
    return call_once(context, call_now, find);
  } catch (const net::AwsError& problem) {
    if (problem.facts().code != kOtherByToken) throw;
  }
  auto there = look_until(until_visible(context), [&] { return find(true); });
  if (!there) there = find(false);
  if (there) return std::move(*there);
  std::string all;
  for (const auto& [name, value] : fields) all += fmt::format("{}={}\n", name, value);
  std::ranges::find(fields, "ClientToken", &net::HttpField::first)->second = digest(all);
  return call_once(context, call_now, find);
}

// EC2 has a quota of its own for spot instances, which is 0 for many types in a new account, and needs a role for them.
constexpr std::string_view kNoSpotCodes[] = {"MaxSpotInstanceCountExceeded",
                                             "AuthFailure.ServiceLinkedRoleCreationNotPermitted"};

// Whether another pool may have machines.
bool is_for_the_next_pool(const LaunchOrder& order, net::AwsProblem problem) {
  return problem == net::AwsProblem::capacity || problem == net::AwsProblem::throttled ||
         (order.heals && problem == net::AwsProblem::quota);
}

void note(const AwsContext& context, Launched& launched, Attempt attempt) {
  const std::string why = attempt.code.empty() ? "" : fmt::format(": {}: {}", attempt.code, attempt.message);
  context.say(fmt::format("{}: {} of {}{}", attempt.pool.text(), attempt.got, attempt.wanted, why));
  launched.attempts.push_back(std::move(attempt));
}

std::string price_text(const Pool& pool) { return fmt::format("{}", pool.max_price); }

// `trial`: number of the earlier calls whose tokens are used up.
Fields head_fields(const LaunchOrder& order, const HeadOrder& head, const Pool& pool, const std::string& address,
                   int trial) {
  const std::string variant = trial == 0 ? address : fmt::format("{} {}", address, trial);
  Fields fields = instance_fields("", head.request, head.account, head.group, head.user_data, pool.subnet_id);
  fields.insert(fields.end(), {{"InstanceType", pool.type},
                               {"MinCount", "1"},
                               {"MaxCount", "1"},
                               {"ClientToken", order.client_token(pool, variant)}});
  if (!address.empty()) {
    const bool has_interface = std::ranges::any_of(
        fields, [](const net::HttpField& one) { return one.first.starts_with("NetworkInterface."); });
    fields.emplace_back(has_interface ? "NetworkInterface.1.PrivateIpAddress" : "PrivateIpAddress", address);
  }
  if (const std::string profile = profile_of_head(head.request, head.account); !profile.empty()) {
    fields.emplace_back("IamInstanceProfile.Name", profile);
  }
  if (!pool.reservation.empty()) fields.emplace_back(kReservationField, pool.reservation);
  if (pool.market == Market::spot) {
    fields.emplace_back("InstanceMarketOptions.MarketType", "spot");
    if (pool.max_price > 0) fields.emplace_back("InstanceMarketOptions.SpotOptions.MaxPrice", price_text(pool));
  }
  Tags tags = common_tags(head.request.name, head.account);
  add_tags(fields, "", 2, "volume", tags);
  tags.merge(name_tags(head.request.name, "head"));
  tags.insert({{tag::kRole, "head"}, {tag::kNodeType, "Master"}, {tag::kLaunch, order.launch_tag()}});
  add_tags(fields, "", 1, "instance", tags);
  return fields;
}

Node run_head(const AwsContext& context, const LaunchOrder& order, const HeadOrder& head, const Pool& pool,
              const std::string& address) {
  int trial = 0;
  const auto call = [&](const Fields& fields) {
    const net::Element answer = context.aws.query(net::kEc2, "RunInstances", fields, net::LostReply::tell);
    const auto made = answer.list("instancesSet");
    if (made.empty()) throw DataError("the answer to ec2 RunInstances names no instance");
    context.aws.created(made.front().value("instanceId"));
    return node_of(made.front());
  };
  const auto find = [&](bool) -> std::optional<Node> {
    auto there = nodes_of_launch(context.aws, order.launch_tag());
    if (there.empty()) return std::nullopt;
    return std::move(there.front());
  };
  const auto until = std::chrono::steady_clock::now() + until_visible(context);
  for (GrowingPause pause;; pause.wait()) {
    try {
      return call_with_token(context, head_fields(order, head, pool, address, trial), call, find);
    } catch (const net::AwsError& problem) {
      const net::AwsError::Facts& facts = problem.facts();
      if (facts.code == kEndedByToken && ++trial < kMostEndedHeads) continue;
      if (!is_about_the_profile(facts.code, facts.message) || std::chrono::steady_clock::now() > until) throw;
    }
  }
}

// Whether another private address may work: this one is taken, or belongs to another subnet. A service error that
// concerns the address has started nothing; run_head() checked that.
bool is_about_the_address(const net::AwsError& problem) {
  const net::AwsError::Facts& facts = problem.facts();
  return facts.code.starts_with("InvalidIPAddress") || facts.code == "InvalidParameterValue" ||
         (facts.problem == net::AwsProblem::transient && facts.status != 0);
}

// The head that somebody else started at this address a moment ago: a worker that guards it, or another `up`. EC2 shows
// it late; a machine of another kind there ends the search.
std::optional<Node> other_head_at(const AwsContext& context, const HeadOrder& head) {
  const auto there = look_until(until_visible(context), [&]() -> std::optional<Node> {
    auto nodes =
        nodes_where(context.aws, filtered({{"vpc-id", head.group.vpc_id}, {"private-ip-address", head.address}}));
    if (nodes.empty()) return std::nullopt;
    return std::move(nodes.front());
  });
  const auto cluster = there ? there->tags.find(tag::kCluster) : Tags::const_iterator();
  const bool is_ours =
      there && there->role == Role::head && cluster != there->tags.end() && cluster->second == head.request.name;
  return is_ours ? there : std::nullopt;
}

// At the address of the head before. nullopt: not from this pool. `is_taken`: a machine that is no head of the cluster
// has the address, so that no pool has it.
std::optional<Node> run_head_at(const AwsContext& context, const LaunchOrder& order, const HeadOrder& head,
                                const Pool& pool, bool& is_taken) {
  try {
    return run_head(context, order, head, pool, head.address);
  } catch (const net::AwsError& problem) {
    if (!is_about_the_address(problem)) throw;
    if (problem.facts().code != "InvalidIPAddress.InUse") return std::nullopt;
    auto other = other_head_at(context, head);
    is_taken = !other;
    return other;
  }
}

// What one pool is asked for.
struct Request {
  const Pool& pool;
  int machines = 0, least = 0;
  bool on_demand_helps = false;  // it is a spot pool, and others are on demand
  // Whether the code ends the search in spot pools only.
  bool leaves_spot(std::string_view code) const {
    return on_demand_helps && std::ranges::find(kNoSpotCodes, code) != std::end(kNoSpotCodes);
  }
};

Request request_of(const LaunchOrder& order, const Pool& pool, int least, bool has_on_demand) {
  return {pool, machines_for(static_cast<int>(order.names.size()), pool.weight), machines_for(least, pool.weight),
          has_on_demand && pool.market == Market::spot};
}

// `trial`: number of the earlier calls that AWS answered with an error, and whose tokens are used up.
Fields fleet_fields(const LaunchOrder& order, const LaunchTemplate& from, const Request& request, Tags tags,
                    int trial) {
  const Pool& pool = request.pool;
  if (pool.weight > 1) tags[tag::kWeight] = std::to_string(pool.weight);
  const std::string options = pool.market == Market::spot ? "SpotOptions." : "OnDemandOptions.";
  const std::string config = "LaunchTemplateConfigs.1.";
  Fields fields{{"Type", "instant"},
                {"ClientToken", order.client_token(pool, trial == 0 ? "" : std::to_string(trial))},
                {"TargetCapacitySpecification.TotalTargetCapacity", std::to_string(request.machines)},
                {"TargetCapacitySpecification.DefaultTargetCapacityType", enum_name(kMarketNames, pool.market)},
                {options + "MinTargetCapacity", std::to_string(request.least)},
                {options + "SingleAvailabilityZone", "true"},
                {options + "SingleInstanceType", "true"},
                {config + "LaunchTemplateSpecification.LaunchTemplateId", from.id},
                {config + "LaunchTemplateSpecification.Version", from.version},
                {config + "Overrides.1.InstanceType", pool.type},
                {config + "Overrides.1.SubnetId", pool.subnet_id}};
  if (pool.max_price > 0) fields.emplace_back(config + "Overrides.1.MaxPrice", price_text(pool));
  if (!pool.reservation.empty()) {
    fields.emplace_back(options + "CapacityReservationOptions.UsageStrategy", "use-capacity-reservations-first");
  }
  add_tags(fields, "", 1, "instance", tags);
  return fields;
}

struct FleetAnswer {
  std::vector<std::string> ids;
  std::string code, message;  // why fewer were granted
};

FleetAnswer read_fleet_answer(const net::Element& element) {
  FleetAnswer answer;
  for (const net::Element& group : element.list("fleetInstanceSet")) {
    for (const net::Element& id : group.list("instanceIds")) answer.ids.push_back(id.text);
  }
  for (const net::Element& failure : element.list("errorSet")) {
    answer.code = failure.value("errorCode");
    answer.message = failure.value("errorMessage");
  }
  return answer;
}

// The machines of this order that AWS shows; nullopt: none of them, or too few of those that are expected.
std::optional<FleetAnswer> find_fleet(const AwsContext& context, const LaunchOrder& order, std::size_t least) {
  FleetAnswer there;
  for (const Node& node : nodes_of_launch(context.aws, order.launch_tag())) there.ids.push_back(node.instance_id);
  if (there.ids.empty() || there.ids.size() < least) return std::nullopt;
  return there;
}

// Ends machines beyond the number that was asked for, which a service that ignores client tokens has started.
void end_surplus(const AwsContext& context, const LaunchOrder& order, int machines, FleetAnswer& answer) {
  if (const auto there = find_fleet(context, order, answer.ids.size() + 1)) answer.ids = there->ids;
  if (std::ssize(answer.ids) <= machines) return;
  std::ranges::sort(answer.ids);
  const auto from = answer.ids.begin() + machines;
  context.say(fmt::format("ending {} instances that lost replies started in excess", answer.ids.end() - from));
  end_instances(context, {from, answer.ids.end()});
  answer.ids.erase(from, answer.ids.end());
}

FleetAnswer call_fleet(const AwsContext& context, const LaunchOrder& order, int machines, const Fields& fields) {
  int calls = 0;
  const auto call = [&](const Fields& now) {
    ++calls;
    return read_fleet_answer(context.aws.query(net::kEc2, "CreateFleet", now, net::LostReply::tell));
  };
  // Fewer than asked for may be all that came, or all that AWS shows so far: the repeated call answers that.
  const auto find = [&](bool whole) {
    return find_fleet(context, order, whole ? static_cast<std::size_t>(machines) : 1);
  };
  FleetAnswer answer = call_with_token(context, fields, call, find);
  for (const std::string& id : answer.ids) context.aws.created(id);
  if (calls > 1) end_surplus(context, order, machines, answer);
  return answer;
}

// Whether the code says that a resource is unknown which `up` creates just before.
bool may_be_fresh(const std::string& code) {
  constexpr const char* kMade[] = {"InvalidLaunchTemplate", "InvalidGroup", "InvalidKeyPair", "InvalidPlacementGroup"};
  return net::problem_of_code(code) == net::AwsProblem::not_found &&
         std::ranges::any_of(kMade, [&](const char* lead) { return code.starts_with(lead); });
}

// An instant fleet reports a launch template or group that is not visible yet inside its answer. Its client token is
// used up with that.
FleetAnswer ask_pool(const AwsContext& context, const LaunchOrder& order, const LaunchTemplate& from,
                     const Request& request, const Tags& tags, Launched& launched) try {
  GrowingPause pause;
  for (int trial = 0;; ++trial) {
    FleetAnswer answer = call_fleet(context, order, request.machines, fleet_fields(order, from, request, tags, trial));
    const bool is_fresh = may_be_fresh(answer.code) || is_about_the_profile(answer.code, answer.message);
    if (!answer.ids.empty() || !is_fresh || trial + 1 >= kMostFleets) return answer;
    pause.wait();
  }
} catch (const net::AwsError& problem) {
  const net::AwsError::Facts& facts = problem.facts();
  if (is_for_the_next_pool(order, facts.problem) || request.leaves_spot(facts.code)) {
    return {{}, facts.code, facts.message};
  }
  // After an unknown answer the pool may have started some.
  if (order.heals && facts.problem != net::AwsProblem::transient)
    note(context, launched, {request.pool, request.machines, 0, facts.code, facts.message});
  throw;
}

}  // namespace

std::string LaunchOrder::client_token(const Pool& pool, const std::string& variant) const {
  const std::string price = pool.max_price > 0 ? fmt::format(" at most {}", pool.max_price) : "";
  return digest(
      fmt::format("{} {} {} {}{} {}{}", group_id, number, join(names, ","), pool.text(), price, variant, nonce));
}

std::string LaunchOrder::launch_tag() const {
  return fmt::format("{}.{}", number, digest(group_id + join(names, ",") + nonce).substr(0, 12));
}

// Workers look for the head where it was, so all pools are asked for that address before one is asked for any other: a
// pool of another zone that comes first does not have it.
Node launch_head(const AwsContext& context, const LaunchOrder& order, const HeadOrder& head, Launched& launched) {
  const std::vector<Pool> pools = head_pools(head.request.spec, head.account);
  std::vector<bool> lacks_capacity(pools.size());
  bool is_taken = head.address.empty();
  for (const bool keeps_address : {true, false}) {
    for (std::size_t at = 0; at < pools.size() && !(keeps_address && is_taken); ++at) {
      if (lacks_capacity[at]) continue;
      const Pool& pool = pools[at];
      try {
        std::optional<Node> node = keeps_address ? run_head_at(context, order, head, pool, is_taken)
                                                 : run_head(context, order, head, pool, {});
        if (!node) continue;
        note(context, launched, {.pool = pool, .wanted = 1, .got = 1});
        if (node->zone.empty()) node->zone = pool.zone;
        return *std::move(node);
      } catch (const net::AwsError& problem) {
        if (problem.facts().problem != net::AwsProblem::capacity) throw;
        lacks_capacity[at] = true;
        note(context, launched, {pool, 1, 0, problem.facts().code, problem.facts().message});
      }
    }
  }
  throw NoCapacity("no pool has a machine for the head",
                   "wait, or give more choice: setting 'instance-type' A,B, setting 'spot' prefer", launched);
}

std::vector<std::string> launch_workers(const AwsContext& context, const LaunchOrder& order, const LaunchTemplate& from,
                                        const std::vector<Pool>& pools, const Tags& tags, int least,
                                        Launched& launched) {
  launched.wanted = static_cast<int>(order.names.size());
  const bool has_on_demand =
      std::ranges::any_of(pools, [](const Pool& pool) { return pool.market == Market::on_demand; });
  bool no_spot = false;
  for (const Pool& pool : pools) {
    if (order.between_pools) order.between_pools();
    if (no_spot && pool.market == Market::spot) continue;
    const Request request = request_of(order, pool, least, has_on_demand);
    FleetAnswer answer = ask_pool(context, order, from, request, tags, launched);
    const int got = static_cast<int>(answer.ids.size());
    note(context, launched, {pool, request.machines, got, answer.code, answer.message});
    if (got >= request.least && got > 0) {
      launched.got = got * pool.weight;
      return answer.ids;
    }
    if (got > 0) {
      end_instances(context, answer.ids);
      launched.ended.insert(answer.ids.begin(), answer.ids.end());
    }
    if (request.leaves_spot(answer.code)) {
      no_spot = true;
      continue;
    }
    const net::AwsProblem problem = net::problem_of_code(answer.code);
    if (!answer.code.empty() && !is_for_the_next_pool(order, problem)) {
      throw net::refusal("ec2 CreateFleet", answer.code, answer.message);
    }
  }
  return {};
}

}  // namespace dtrain::cluster
