// Keeps an agent connected to the coordinator of the highest term. There is one connection in use (channel_) and at
// most one that waits for its welcome (joining_); frames of any other channel are ignored. Everything happens on the
// loop's thread; results of background tasks come back to it, and every such callback checks over_ first.
//
// Reports on workers are kept until a coordinator has confirmed them with a sign of life, and are sent again to the
// next coordinator; other frames are dropped while there is no connection. A lost connection ends the agent, or starts
// the search for a coordinator when agents outlive it. on_lost or on_over is called once, for every reason to end.
#include "follower.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/base/with_hint.hpp>
#include <dtrain/elastic/job_files.hpp>

#include "surroundings.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;
constexpr auto kTick = 100ms;
// Ticks further apart than this: this process was held up, and reads the coordinator's frames before it judges silence.
constexpr auto kLongTick = 1s;
// The coordinator answers a join request at once; the first coordinator may be busy starting many agents.
constexpr auto kWelcomeDeadline = 2s, kFirstWelcomeDeadline = 10s;
constexpr auto kDialDeadline = 2s;
constexpr std::size_t kMaxKept = 4096;

Time now() { return std::chrono::steady_clock::now(); }

struct Reached {
  std::shared_ptr<net::Channel> channel;
  comm::PeerAddress address;
};

// Connects to the first address that answers; throws the failure of the first address when none does. This one, which
// the launcher chose, has half of the time, however many others there are.
Reached reach_coordinator(net::Loop& loop, const AgentOrder& order, std::chrono::milliseconds deadline) {
  std::vector<std::string> addresses = order.more_addresses;
  addresses.insert(addresses.begin(), order.address);
  const auto others = static_cast<int>(order.more_addresses.size());
  auto patience = others == 0 ? deadline : deadline / 2;
  std::exception_ptr first;
  for (const std::string& address : addresses) {
    try {
      return {net::connect_channel(loop, address, order.port, order.token, patience), {address, order.port}};
    } catch (const RemoteError&) {
      if (!first) first = std::current_exception();
    }
    if (others > 0) patience = deadline / 2 / others;
  }
  std::rethrow_exception(first);
}

}  // namespace

Follower::Follower(net::Loop& loop, const AgentOptions& options, Events events)
    : loop_(loop), options_(options), events_(std::move(events)), tasks_(loop) {}

void Follower::start() {
  const AgentOrder& order = options_.order;
  auto [channel, address] = reach_coordinator(loop_, order, options_.connect_deadline);
  local_address_ = channel->local_address();
  peers_.emplace(loop_, tasks_, local_address_, order.token,
                 Peers::Events{.on_vote_request = [this](const VoteRequest& asked) { return answer(asked); },
                               .on_leader = [this](const Leader& leader) { feed(LeaderFound{leader}); }});
  election_.self = {order.host, order.tree, {local_address_, peers_->port()}};
  election_.heard = last_tick_ = now();
  join(std::move(channel), address);
  tick();
}

void Follower::tick() {
  const Time time = now();
  const bool held_up = time - std::exchange(last_tick_, time) > kLongTick;
  if (welcome_ && !held_up && !over_) {
    if (welcome_->outlive) {
      feed(Tick{});
    } else if (welcome_->silence > 0ms && time - election_.heard >= welcome_->silence) {
      lost("nothing was heard of the coordinator");
    }
  }
  if (!over_) loop_.after(kTick, [this] { tick(); });
}

// Frames to the coordinator.

void Follower::send(Tag tag, WorkerId worker, std::string_view body) {
  if (!channel_) return;
  if (tag == Tag::say || tag == Tag::exited) ++frames_;
  channel_->send(encode(tag, worker, body));
}

void Follower::send_kept(Tag tag, WorkerId worker, std::string_view body) {
  kept_.push_back({.frame = encode(tag, worker, body), .ended = tag == Tag::exited ? worker : 0});
  if (channel_) resend(kept_.back());
  if (!welcome_ || !welcome_->outlive || kept_.size() > kMaxKept) forget_oldest_kept();
}

void Follower::forget_oldest_kept() {
  if (kept_.front().ended != 0) events_.on_end_known(kept_.front().ended);
  kept_.pop_front();
}

void Follower::resend(Kept& kept) {
  kept.number = ++frames_;
  channel_->send(kept.frame);
}

void Follower::finish(std::function<void()> done) {
  over_ = true;
  if (!channel_) return done();
  on_let_out_ = std::move(done);
  channel_->close_after_sending();
}

// Joining a coordinator.

void Follower::join(ChannelPtr channel, const comm::PeerAddress& address) {
  joining_ = channel;
  joining_at_ = address;
  const net::Channel* key = channel.get();
  channel->listen({.on_frame = [this, key](std::string frame) { hear(key, std::move(frame)); },
                   .on_close = [this, key](const std::string& reason) { closed(key, reason); }});
  const JoinRequest request{.host = options_.order.host,
                            .tree = options_.order.tree,
                            .term = election_.leader ? election_.leader->term : 0,
                            .port = peers_->port(),
                            .voters = election_.voters,
                            .workers = events_.report()};
  channel->send(encode(Tag::join, 0, to_json(request).dump()));
  loop_.after(welcome_ ? kWelcomeDeadline : kFirstWelcomeDeadline,
              [this, key] { give_up_joining(key, "the coordinator did not answer"); });
}

void Follower::give_up_joining(const net::Channel* channel, const std::string& why) {
  if (joining_.get() != channel || !joining_) return;
  joining_ = nullptr;
  if (!welcome_) return over(why);
  feed(DialFailed{});
}

void Follower::hear(const net::Channel* channel, std::string bytes) {
  try {
    const AgentFrame frame = read_frame([&] { return decode(std::move(bytes)); });
    if (joining_ && channel == joining_.get()) return hear_first(frame);
    if (!channel_ || channel != channel_.get()) return;
    election_.heard = now();
    if (welcome_->outlive) feed(LeaderHeard{});
    obey(frame);
  } catch (const InvalidFrame& error) {
    over(fmt::format("the coordinator sent an invalid message: {}", error.what()));
  }
}

void Follower::hear_first(const AgentFrame& frame) {
  if (frame.tag == Tag::end) return over("the coordinator has another agent on this host");
  if (frame.tag != Tag::welcome) return;
  follow(read_frame([&] { return welcome_from_json(Json::parse(frame.body, "the coordinator's welcome")); }));
}

void Follower::follow(Welcome welcome) {
  const Leader leader{welcome.term, joining_at_};
  if (leader.term < election_.voted_term) return give_up_joining(joining_.get(), "its term is outdated");
  channel_ = std::exchange(joining_, nullptr);
  welcome_ = std::move(welcome);
  election_.heard = now();
  election_.times.patience = welcome_->patience;
  if (welcome_->silence > 0ms) election_.times.silence = welcome_->silence;
  frames_ = 0;
  events_.on_welcome(*welcome_);
  for (Kept& kept : kept_) resend(kept);
  feed(Followed{leader});
}

void Follower::obey(const AgentFrame& frame) {
  if (frame.tag == Tag::alive) return hear_sign_of_life(frame.body);
  if (frame.tag != Tag::voters) return events_.on_frame(frame);
  const VoterNotice notice =
      read_frame([&] { return voter_notice_from_json(Json::parse(frame.body, "a notice of the coordinator")); });
  feed(notice);
  send(Tag::known, 0, std::to_string(notice.voter_set.generation));
}

void Follower::hear_sign_of_life(const std::string& body) {
  const auto space = body.find(' ');
  const std::uint64_t arrived =
      read_frame([&] { return number_of(space == body.npos ? "" : std::string_view(body).substr(space + 1)); });
  while (!kept_.empty() && kept_.front().number <= arrived) forget_oldest_kept();
  send(Tag::alive, 0, body.substr(0, space));
}

void Follower::closed(const net::Channel* channel, const std::string& reason) {
  if (joining_ && channel == joining_.get()) return give_up_joining(channel, reason);
  if (!channel_ || channel != channel_.get()) return;
  channel_ = nullptr;
  if (on_let_out_) return on_let_out_();
  if (!welcome_->outlive) return lost(reason);
  feed(LeaderGone{});
}

// One that is only silent sees that this agent is gone, and asks nothing of it any more.
void Follower::lost(const std::string& reason) {
  if (std::exchange(over_, true)) return;
  channel_ = nullptr;
  events_.on_lost(reason);
}

void Follower::over(const std::string& reason) {
  if (!std::exchange(over_, true)) events_.on_over(reason);
}

// Elections.

Vote Follower::answer(const VoteRequest& asked) {
  last_vote_ = {.voter = election_.self, .granted = false, .term = 0, .leader = {}, .voters = {}};
  if (welcome_ && welcome_->outlive && !over_) feed(asked);
  return last_vote_;
}

void Follower::feed(const ElectEvent& event) {
  ElectDecision decision = elect(std::move(election_), event, now());
  election_ = std::move(decision.state);
  for (const ElectAction& action : decision.actions) {
    if (!over_) std::visit([&](const auto& kind) { act(kind); }, action);
  }
}

void Follower::act(const Dial& dial) {
  const comm::PeerAddress address = dial.leader.address;
  tasks_.connect(address.address, address.port, options_.order.token, kDialDeadline,
                 [this, address](const ChannelPtr& channel) {
                   if (over_) return;
                   if (channel) return join(channel, address);
                   feed(DialFailed{});
                 });
}

void Follower::act(const LookAround&) {
  if (!options_.look_into_folder || std::exchange(looking_, true)) return;
  tasks_.run(
      [this, look = options_.look_into_folder]() -> std::function<void()> {
        AgentOptions::FolderNews news;
        try {
          news = look();
        } catch (const std::exception&) {  // no such folder, or it is being changed
        }
        return [this, news] {
          looking_ = false;
          if (over_) return;
          if (news.job_over && !hears_leader(election_, now())) return over("the job is over");
          if (news.leader) feed(LeaderFound{*news.leader});
        };
      },
      [this] { looking_ = false; });
}

void Follower::act(const RequestVotes& ask) {
  for (const Voter& agent : ask.whom) {
    peers_->request_vote(agent, {ask.term, ask.pre_vote}, [this, ask, agent](std::optional<Vote> vote) {
      if (over_) return;
      Vote none{.voter = agent, .granted = false, .term = 0, .leader = {}, .voters = {}};
      feed(VoteReceived{ask.term, ask.pre_vote, vote ? *vote : none});
    });
  }
}

void Follower::act(const HangUp& hang_up) {
  if (const ChannelPtr channel = std::exchange(channel_, nullptr)) {
    channel->send(encode(Tag::stale_term, 0, std::to_string(hang_up.term)));
    channel->close_after_sending();
  }
}

void Follower::act(const AcquireTiebreaker& tiebreaker) {
  const std::string owner = fmt::format("agent {} {}", options_.order.host, options_.order.tree);
  tasks_.run(
      [this, tiebreaker, owner, folder = Path(options_.order.job_folder)]() -> std::function<void()> {
        try {
          const bool won = acquire_tiebreaker(folder, tiebreaker.generation, owner);
          return [this, tiebreaker, won] { feed(TiebreakerAnswered{tiebreaker.generation, won}); };
        } catch (const Error& error) {
          return [this, text = std::string(error.what())] { act(Note{text}); };
        }
      },
      [this] { act(Note{"no thread can be started here: a limit on processes or threads may be too low"}); });
}

void Follower::act(const StartCoordinator& start) {
  if (options_.coordinator_command.empty()) return feed(CoordinatorFailed{});
  Leader leader{start.election.term, {local_address_, 0}};
  const CoordinatorOrder order{start.election, options_.order.token, options_.order.job_folder, local_address_,
                               welcome_->document};
  const auto on_port = [this, leader](std::uint16_t port) mutable {
    leader.address.port = port;
    if (port != 0) return feed(CoordinatorRuns{leader});
    act(Note{fmt::format("the coordinator of term {} ended at its start: logs/{} may say why", leader.term,
                         job_file::kCoordinatorLog)});
    feed(CoordinatorFailed{});
  };
  std::vector<std::string> environment = workers_environment(*welcome_);
  environment.push_back(coordinator_mark(options_.order));
  try {
    coordinator_ = std::make_unique<CoordinatorProcess>(loop_, options_.coordinator_command, environment,
                                                        workers_folder(*welcome_, options_.order), order, on_port);
  } catch (const Error& error) {
    act(Note{with_hint(error)});
    feed(CoordinatorFailed{});
  }
}

void Follower::act(const Announce& announce) {
  for (const Voter& agent : announce.whom) peers_->send_leader(agent, announce.leader);
}

void Follower::act(const GiveUp&) {
  lost(fmt::format("no coordinator was found for {:.0f} s", std::chrono::duration<double>(welcome_->patience).count()));
}

void Follower::act(const Note& note) {
  if (options_.on_note) options_.on_note(note.text);
}

}  // namespace dtrain::elastic
