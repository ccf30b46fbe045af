#include <dtrain/cluster/head_guard.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/node.hpp>
#include <dtrain/net/http_exchange.hpp>
#include <dtrain/net/instance_metadata.hpp>

#include "head_start.hpp"
#include "lease.hpp"

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;
constexpr auto kProbe = 5s;      // the head answers a request in this time, or counts as one that does not
constexpr auto kGuardTick = 5s;  // between two requests
constexpr auto kLongestUnreached = 30s, kLongestBetweenLooks = 20s;
constexpr int kMostTurns = 30;  // those whose turn is later ask EC2 no more seldom
constexpr auto kForAws = 120s;

// The first part of the time that a head may be gone for: a restart of its program is no matter for EC2.
std::chrono::seconds unreached_before_asking(std::chrono::seconds patience) {
  return std::min<std::chrono::seconds>(kLongestUnreached, patience / 4);
}

// Many workers would ask EC2 at the same time: the later the turn of a worker, the more seldom it does.
std::chrono::seconds between_looks(std::chrono::seconds patience, const HeadSeen& seen, const std::string& me) {
  const auto turn = std::ranges::find(seen.workers, me) - seen.workers.begin();
  return std::clamp<std::chrono::seconds>(patience / 8, 1s, kLongestBetweenLooks) *
         (1 + std::min<std::ptrdiff_t>(turn, kMostTurns));
}

// In the order in which `up` tries them. A machine in a reservation has the type of that.
std::vector<std::string> types_of_head(const Fleet& fleet) {
  if (fleet.options.contains("head-type") || fleet.options.contains("capacity-reservation")) return {};
  const auto texts = fleet.options.find("instance-type");
  if (texts == fleet.options.end()) return {};
  Spec spec;
  set_worker_types(spec, texts->second);
  return spec.instance_types;
}

std::string attempts_text(const std::vector<Attempt>& attempts) {
  std::vector<std::string> texts;
  for (const Attempt& one : attempts) {
    if (!one.code.empty()) texts.push_back(fmt::format("{}: {}", one.pool.type, one.code));
  }
  return join(texts, "; ");
}

}  // namespace

HeadGuard::HeadGuard(AwsContext context, NodeOrder order, std::string me, std::function<bool()> reaches_head,
                     std::function<UnixTime()> clock)
    : context_(std::move(context)),
      order_(std::move(order)),
      me_(std::move(me)),
      reaches_head_(std::move(reaches_head)),
      clock_(std::move(clock)) {}

std::string HeadGuard::look() {
  const auto begin = std::chrono::steady_clock::now();
  if (reaches_head_()) {
    unreached_since_.reset();
    next_ = {};
    memory_ = {};
    told_.clear();
    return told_;
  }
  if (!unreached_since_) unreached_since_ = begin;
  if (begin - *unreached_since_ < unreached_before_asking(order_.replace_head_after) || begin < next_) return told_;
  context_.aws.limit_until(begin + kForAws);
  Fleet fleet = read_fleet(context_.aws, order_.cluster);
  const UnixTime now = clock_();  // after an answer, which shows AWS's clock
  const Node* own = fleet.find(me_);
  const std::string holder = own ? own->name : me_;
  const HeadSeen seen = head_seen_in(fleet, holder, now);
  HeadDecision decision = decide_head(seen, me_, order_.replace_head_after, std::move(memory_), now);
  memory_ = std::move(decision.memory);
  next_ = begin + between_looks(order_.replace_head_after, seen, me_);
  told_ = decision.start ? start(std::move(fleet), holder) : std::move(decision.why);
  return told_;
}

// Between the look and the lease another machine may have acted, so everything is looked at and decided again.
std::string HeadGuard::start(Fleet fleet, const std::string& holder) {
  claim_lease(context_, fleet, holder, clock_, [this] { return read_fleet(context_.aws, order_.cluster); });
  const HeadSeen seen = head_seen_in(fleet, holder, clock_());
  HeadDecision decision = decide_head(seen, me_, order_.replace_head_after, std::move(memory_), clock_());
  memory_ = std::move(decision.memory);
  if (!decision.start) {
    if (seen.keeper.empty()) write_lease(context_.aws, fleet, {}, clock_());
    return decision.why;
  }
  const bool is_first = memory_.failures == 0;
  std::vector<Attempt> attempts;
  std::string outcome;
  const auto failure = attempt([&] {
    const Node head = start_head_again(context_.aws, fleet, types_of_head(fleet), memory_.lost, attempts);
    outcome = fmt::format("{} started {} at {}", holder, head.instance_id, head.private_ip);
    if (const std::string others = attempts_text(attempts); !others.empty()) outcome += "; " + others;
  });
  if (failure) outcome = fmt::format("{} could not start one: {}", holder, failure->what());
  memory_ = after_start(std::move(memory_), !failure, clock_());
  std::string text = fmt::format("{}; {}", decision.why, outcome);
  // The events have little room: one for a head that is tried for again and again. The new head keeps the cluster at
  // once.
  const Tags events = !failure || is_first ? event_tags(fleet, {{clock_(), text}}) : Tags{};
  write_lease(context_.aws, fleet, {}, clock_(), events);
  return text;
}

void guard_head(const GuardOptions& options) {
  watch_stop_signals();
  const NodeOrder& order = options.order;
  net::AwsSettings settings;
  settings.region = order.region;
  net::AwsCalls aws(settings);
  net::InstanceMetadata metadata({.url = net::instance_metadata_url(), .deadline = kProbe});
  const auto reaches = [&] {
    const std::string url = fmt::format("http://{}:{}/", order.head, order.port);
    try {
      return net::exchange_http({.url = url, .deadline = kProbe, .stop_on_signal = true, .direct = true}).status > 0;
    } catch (const RemoteError&) {
      return false;
    }
  };
  const auto clock = [&aws] { return aws_time(aws); };
  std::optional<HeadGuard> guard;
  std::string said;
  while (stop_signal() == 0) {
    std::string words;
    try {
      if (!guard) {
        guard.emplace(AwsContext{.aws = aws, .wait = false}, order, metadata.get("meta-data/instance-id"), reaches,
                      clock);
      }
      words = guard->look();
    } catch (const Stopped&) {
      return;
    } catch (const Error& error) {
      words = error.what();
    }
    if (options.on_note && words != said && !words.empty()) options.on_note(words);
    said = std::move(words);
    const auto pause =
        std::min<std::chrono::seconds>(kGuardTick, std::max<std::chrono::seconds>(1s, order.replace_head_after / 8));
    pause_unless_stopped(pause);
  }
}

}  // namespace dtrain::cluster
