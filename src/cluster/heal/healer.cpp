#include <dtrain/cluster/healer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/health.hpp>
#include <dtrain/cluster/tagged_prices.hpp>

#include "aws/refill.hpp"
#include "aws/resources.hpp"
#include "aws/wait.hpp"
#include "lease.hpp"
#include "left.hpp"
#include "plan/ended.hpp"

namespace dtrain::cluster {
namespace {

using Kind = HealAction::Kind;

constexpr std::chrono::seconds kHealthEvery{60};
constexpr std::chrono::seconds kAccountEvery{3'600}, kAccountAgain{60};        // the latter after a failure
constexpr std::chrono::seconds kSpotPricesEvery{3'600}, kSpotPricesAgain{60};  // the latter after a failure
constexpr std::chrono::seconds kWriteSpendingEvery{60};
constexpr std::size_t kMostEndedNamed = 2;

std::string pools_text(const std::vector<Attempt>& attempts) {
  std::vector<std::string> texts;
  for (const Attempt& one : attempts) {
    texts.push_back(one.code.empty() ? fmt::format("{}: {} of {}", one.pool.text(), one.got, one.wanted)
                                     : fmt::format("{}: {}", one.pool.text(), one.code));
  }
  return join(texts, "; ");
}

std::string nodes_text(const std::vector<Node>& nodes) {
  std::vector<std::string> texts;
  for (const Node& node : nodes) texts.push_back(fmt::format("{} ({})", node.name, node.instance_id));
  return join_first(texts, 4, ", ");
}

std::string ended_texts(const std::vector<Node>& ended) {
  std::vector<std::string> texts;
  for (const Node& node : ended) texts.push_back(ended_text(node));
  return join_first(texts, kMostEndedNamed, "; ");
}

// The text of an error without the id of the request, which makes an event of each repetition.
std::string without_request(std::string text, const std::string& request_id) {
  const std::string named = ", request " + request_id;
  if (const auto at = text.find(named); !request_id.empty() && at != text.npos) text.erase(at, named.size());
  return text;
}

void lower(Wish& wish, bool base, int weight) {
  int& count = base ? wish.base : wish.elastic;
  count = std::max(count - weight, 0);
}

const Node* find_ending(const Fleet& fleet, const std::string& id) {
  const auto found = std::ranges::find(fleet.ending, id, &Node::instance_id);
  return found == fleet.ending.end() ? nullptr : &*found;
}

// Marks a worker as one that the wish no longer counts. Returns false if it has that mark already. AWS is asked again,
// because the fleet may have been read minutes ago, before its job let the worker go, and another command or reconciler
// may have counted it out since.
bool mark_left(net::AwsCalls& aws, const std::string& id) {
  for (const net::Element& reservation :
       aws.query_all(net::kEc2, "DescribeInstances", filtered({{"instance-id", id}}), "reservationSet")) {
    for (const net::Element& instance : reservation.list("instancesSet")) {
      if (node_of(instance).tags.contains(tag::kLeft)) return false;
    }
  }
  set_tags(aws, {id}, {{tag::kLeft, "yes"}});
  return true;
}

}  // namespace

void write_spending(net::AwsCalls& aws, const Fleet& fleet, const Spending& spending) {
  if (fleet.group) set_tags(aws, {fleet.group->id}, {{tag::kSpent, spending_text(spending)}});
}

// The mark goes first: if this is interrupted, the wish stays one too high, which costs a machine and not a worker.
void count_out(net::AwsCalls& aws, const Fleet& fleet, const Node& node) {
  if (!tagged_wish(fleet) || !node.tags.contains(tag::kCluster) || node.tags.contains(tag::kLeft)) return;
  if (!mark_left(aws, node.instance_id)) return;
  // After an `up` with fewer workers, a base worker may be beyond the wish: it was wanted no longer. The others are
  // read anew, for they may have been counted out meanwhile, too.
  const int others = node.base ? counted_base(read_fleet(aws, fleet.name), node.instance_id) : 0;
  change_wish(aws, fleet, std::nullopt, [&](Wish& wish) {
    const int fewer = node.base ? std::clamp(wish.base - others, 0, node.weight) : node.weight;
    lower(wish, node.base, fewer);
  });
}

Healer::Healer(AwsContext context, std::string cluster, std::string holder,
               std::function<ClusterRequest(const Fleet&)> request_of, ClusterInside& inside,
               std::function<UnixTime()> clock)
    : context_(std::move(context)),
      cluster_(std::move(cluster)),
      holder_(std::move(holder)),
      request_of_(std::move(request_of)),
      inside_(inside),
      clock_(std::move(clock)) {
  context_.wait = false;
}

void Healer::require_ec2(const Fleet& fleet) const {
  if (!fleet.group) {
    throw UsageError(fmt::format("there is no cluster {} in {}", cluster_, context_.aws.region()),
                     fmt::format("dtrain cluster up {} creates it", cluster_));
  }
  if (fleet.on_emr()) throw UsageError("Amazon EMR keeps its clusters itself", "leave out setting 'heal'");
}

// With what this started, until AWS shows it.
Fleet Healer::read() const {
  Fleet known{.name = cluster_};
  for (const auto& [at, node] : started_) known.nodes.push_back(node);
  return with_known(read_fleet(context_.aws, cluster_), known);
}

void Healer::write(const Fleet& fleet, Tags tags, const std::string& holder) {
  write_lease(context_.aws, fleet, holder, clock_(), std::move(tags));
}

// Returns whether this one acts. Where two write at the same time, the one that wrote last does.
bool Healer::take_lease(Fleet& fleet, Look& look) {
  if (lease_state(tagged_lease(fleet), holder_, clock_()) == LeaseState::free) {
    may_hold_lease_ = true;  // also if a signal ends the wait for AWS to show it
    claim_lease(context_, fleet, holder_, clock_, [this] {
      Fleet shown = read();
      require_ec2(shown);
      return shown;
    });
  }
  const Lease lease = tagged_lease(fleet);
  if (lease.holder == holder_) {
    may_hold_lease_ = true;
    if (clock_() - lease.at > kRenewAfter) write(fleet, {}, holder_);
    return true;
  }
  look.why_not = fmt::format("{} keeps the cluster, and was there {} ago", lease.holder,
                             format_duration(std::max(clock_() - lease.at, UnixTime(0))));
  return false;
}

Wish Healer::read_wish(const Fleet& fleet, const ClusterRequest& request) {
  const std::optional<Wish> tagged = tagged_wish(fleet);
  if (wanted_budget_ && tagged && tagged->budget == *wanted_budget_) wanted_budget_.reset();
  if (tagged && !wanted_budget_) return *tagged;
  return *change_wish(context_.aws, fleet, wish_without_tag(fleet, request.spec.workers), [&](Wish& wish) {
    if (wanted_budget_) wish.budget = *wanted_budget_;
  });
}

// Without an answer, the spot prices before are those that count, or those on demand.
std::string Healer::read_spot_again(std::vector<std::string> types, UnixTime now) {
  if (types.empty()) return {};
  if (types == spot_types_ && now < spot_until_) return spot_problem_;
  SpotPrices read;
  try {
    read = read_spot_prices(context_.aws, types);
  } catch (const RemoteError& error) {
    read.why_not = error.what();
  }
  spot_problem_ = read.why_not.empty() ? std::string() : fmt::format("spot prices are not known: {}", read.why_not);
  if (spot_problem_.empty()) spot_ = std::move(read);
  spot_types_ = std::move(types);
  spot_until_ = now + (spot_problem_.empty() ? kSpotPricesEvery : kSpotPricesAgain);
  return spot_problem_;
}

NodePrice Healer::price_of(const Fleet& fleet, UnixTime now, Look& look) {
  std::set<std::string> types;
  for (const std::vector<Node>* nodes : {&fleet.nodes, &fleet.ending}) {
    for (const Node& node : *nodes) {
      if (node.market == Market::spot) types.insert(node.type);
    }
  }
  if (std::string problem = read_spot_again({types.begin(), types.end()}, now); !problem.empty())
    look.waits.push_back(std::move(problem));
  return node_price(with_tagged_prices(fleet, known_prices(context_.aws.region())), spot_);
}

std::string Healer::count_spending(Fleet& fleet, const Wish& wish, UnixTime now, Look& look) {
  if (!wish.budget) return {};
  const Spending before = tagged_spending(fleet);
  Spending spent = spending_until(fleet, before, price_of(fleet, now, look), now);
  const BudgetState state = budget_state(*wish.budget, spent.dollars);
  const std::string text = budget_text(*wish.budget, spent);
  spent.warned = state != BudgetState::ok;
  if (state == BudgetState::warn && !before.warned) look.events.push_back({now, text + " are spent"});
  const bool has_news = state != budget_state(*wish.budget, before.dollars) || spent.warned != before.warned;
  if (has_news || now - before.at >= kWriteSpendingEvery) {
    write(fleet, {{tag::kSpent, spending_text(spent)}}, holder_);
    written_ = spent;
  }
  fleet.group->tags[tag::kSpent] = spending_text(spent);
  return state == BudgetState::spent ? text : std::string();
}

// What the options name may be gone since `up`: a reservation, an image, a key. What was read before then counts on.
std::string Healer::read_account_again(const ClusterRequest& request, UnixTime now) {
  if (now < account_until_) return account_problem_;
  account_problem_.clear();
  if (const auto failure = attempt([&] { account_ = read_account(context_.aws, request.spec, cluster_); })) {
    account_problem_ =
        fmt::format("machines are {}: {}", account_ ? "started as before" : "not started", failure->what());
  }
  account_until_ = now + (account_problem_.empty() ? kAccountEvery : kAccountAgain);
  return account_problem_;
}

// AWS is asked seldom, and the head each time: what a machine says of its end is urgent.
Sick Healer::read_sick(const Fleet& fleet, const std::optional<TagSyncView>& job, UnixTime now) {
  if (now - health_at_ >= kHealthEvery) {
    health_ = read_health(context_.aws, fleet);
    health_at_ = now;
  }
  std::vector<NodeHealth> health = health_;
  try {
    if (job && !job->nodes.is_null()) add_answer_of_head(fleet, job->nodes, health);
  } catch (const DataError&) {  // a head of another version: AWS alone says who is sick
    health = health_;
  }
  return sick_in(health);
}

Healer::Look Healer::look() {
  Look look;
  std::erase_if(started_, [&](const auto& one) { return clock_() - one.first > kUntilVisible; });
  Fleet fleet = read();
  require_ec2(fleet);
  const UnixTime now = clock_();  // after the first answer, which shows AWS's clock
  look.acts = take_lease(fleet, look);
  if (!look.acts) return look;
  const ClusterRequest request = request_of_(fleet);
  const Wish before = read_wish(fleet, request);
  // AWS shows a tag some time after it was written, and announcement() takes the budget from the tags: they get the
  // newest values here.
  fleet.group->tags[tag::kWish] = wish_text(before);
  if (before.budget && tagged_spending(fleet).at < written_.at)
    fleet.group->tags[tag::kSpent] = spending_text(written_);
  Wish wish = before;
  const std::optional<TagSyncView> job = inside_.look(fleet);
  std::string spent = count_spending(fleet, wish, now, look);
  Sick sick;
  std::vector<Pool> pools;
  if (spent.empty()) {
    if (const std::string problem = read_account_again(request, now); !problem.empty()) look.waits.push_back(problem);
    const Node* head = fleet.head();
    if (account_) pools = refill_pools(request.spec, *account_, head ? head->zone : "");
    sick = read_sick(fleet, job, now);
  }
  Observed seen = observed_in(fleet, sick, job, std::move(pools));
  seen.spent_budget = std::move(spent);
  HealDecision decision = reconcile(seen, wish, least_workers(request.spec), std::move(memory_), now);
  memory_ = std::move(decision.memory);
  std::ranges::move(decision.waits, std::back_inserter(look.waits));
  look.hurries = decision.hurries;
  for (const HealAction& action : decision.actions) {
    if (action.kind == Kind::restore_head && !account_) continue;  // look.waits says why
    write(fleet, {}, holder_);
    const std::string outcome = try_to_carry_out(action, fleet, request, wish, now);
    look.events.push_back({now, fmt::format("{}; {}", action.reason, outcome)});
  }
  if (look.events.empty()) return look;
  if (wish != before) {
    change_wish(context_.aws, fleet, before, [&](Wish& now_wanted) {
      lower(now_wanted, true, before.base - wish.base);
      lower(now_wanted, false, before.elastic - wish.elastic);
    });
  }
  write(fleet, event_tags(fleet, look.events), holder_);
  return look;
}

std::string Healer::restore_head(const Fleet& fleet, ClusterRequest request, const Wish& wish) {
  request.spec.workers = wish.base;
  request.spec.min_workers = 0;
  Plan plan = plan_up(request.spec, request.options, *account_, fleet);
  // The ssh rules stay: only the user knows the address to open.
  std::erase_if(plan.actions, [](const Action& action) { return action.step == Step::ssh_rule; });
  const UpResult made = bring_up(context_, request, *account_, fleet, plan);
  const Node* head = made.fleet.head();
  if (head) return fmt::format("started {} at {}", head->instance_id, head->private_ip);
  const Node* ended = latest_ended_head(made.fleet);
  return ended ? ended_text(*ended) : "none was started";
}

std::string Healer::start(const HealAction& action, const Fleet& fleet, const ClusterRequest& request, const Wish& wish,
                          UnixTime now) {
  std::vector<std::string> names;
  if (action.base && action.kind == Kind::start_workers) {
    Spec spec = request.spec;
    spec.workers = wish.base;
    names = missing_base_workers(spec, fleet);
  }
  names.resize(std::min(names.size(), static_cast<std::size_t>(action.count)));
  for (std::string& name : next_workers(fleet, action.count - static_cast<int>(names.size()))) {
    names.push_back(std::move(name));
  }
  Refill result;
  const auto remember = [&] { memory_ = after_attempts(std::move(memory_), result.workers.attempts, now); };
  try {
    refill_workers(context_, fleet, names, action.pools, action.base ? NodeLifecycle::base : NodeLifecycle::elastic,
                   result);
  } catch (const net::AwsError&) {
    remember();
    throw;
  }
  remember();
  for (const Node& node : result.added) started_.emplace_back(now, node);
  std::string tried = pools_text(result.workers.attempts);
  if (!result.ended.empty()) tried += "; " + ended_texts(result.ended);
  if (result.added.empty()) return "none could be started: " + tried;
  if (action.kind == Kind::replace) {
    set_tags(context_.aws, {action.id}, {{tag::kReplaced, result.added.front().instance_id}});
  }
  return fmt::format("started {}: {}", nodes_text(result.added), tried);
}

// Returns what was done, or the failure.
std::string Healer::try_to_carry_out(const HealAction& action, const Fleet& fleet, const ClusterRequest& request,
                                     Wish& wish, UnixTime now) {
  std::string outcome, request_id;
  const auto failure = attempt([&] {
    try {
      outcome = carry_out(action, fleet, request, wish, now);
    } catch (const net::AwsError& problem) {
      request_id = problem.facts().request_id;
      throw;
    }
  });
  return failure ? "failed: " + without_request(failure->what(), request_id) : outcome;
}

std::string Healer::carry_out(const HealAction& action, const Fleet& fleet, const ClusterRequest& request, Wish& wish,
                              UnixTime now) {
  const Node* node = fleet.find(action.id);
  if (!node) node = find_ending(fleet, action.id);
  switch (action.kind) {
    case Kind::restore_head:
      memory_ = after_head_start(std::move(memory_), now);
      return restore_head(fleet, request, wish);
    case Kind::count_out: {
      if (!mark_left(context_.aws, action.id)) return "another command has counted it out";
      lower(wish, action.base, action.count);
      return fmt::format("{} are wanted", wish.workers());
    }
    case Kind::start_workers:
    case Kind::replace:
      return start(action, fleet, request, wish, now);
    case Kind::join:
      inside_.add(action.host);
      return action.host + " joins the job";
    case Kind::drain:
      inside_.remove(action.host);
      return action.host + " leaves the job";
    case Kind::finish_replace:
      return "ended " + action.id + ", the new one is " +
             replace_node(context_, fleet, *node, *fleet.find(action.other));
    case Kind::end:
      end_instances(context_, {action.id});
      return "ended " + action.id;
    case Kind::close: {
      std::string job = inside_.stop_job(fleet);
      if (action.ids.empty()) return job;
      end_instances(context_, action.ids);
      return fmt::format("{}; ended {}", job, join_first(action.ids, 4, ", "));
    }
  }
  return {};
}

void Healer::leave(net::AwsCalls& last) noexcept {
  if (!std::exchange(may_hold_lease_, false)) return;
  try {
    const Fleet fleet = read_fleet(last, cluster_);
    if (!fleet.group || tagged_lease(fleet).holder != holder_) return;
    write_lease(last, fleet, {}, clock_());
  } catch (const std::exception&) {
    // The lease ends by itself.
  }
}

}  // namespace dtrain::cluster
