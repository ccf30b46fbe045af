// elect() has no threads, locks, clock or network: it changes an Election value and returns actions. The agent that
// feeds it must feed one event after the other, with times that never decrease. Failures of the network are events too
// (DialFailed, LeaderGone, a vote that is not granted), and every wait has a deadline in ElectionTimes that a Tick
// checks.
#include "elect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dtrain::elastic {
namespace {

constexpr std::ptrdiff_t kLastStagger = 10;

bool holds(const VoterSet& voter_set, const Voter& agent) {
  return std::ranges::any_of(voter_set.voters, [&](const Voter& each) { return each.is(agent); });
}

// All agents of both voter sets once, those of the committed one first.
std::vector<Voter> all_voters(const KnownVoters& voters) {
  std::vector<Voter> all;
  for (const auto* voter_set : {&voters.committed, &voters.prepared}) {
    if (!*voter_set) continue;
    for (const Voter& agent : (*voter_set)->voters) {
      if (std::ranges::none_of(all, [&](const Voter& each) { return each.is(agent); })) all.push_back(agent);
    }
  }
  return all;
}

// The voter sets whose consent is needed: of the newest committed generation, and of all that may have been committed
// since. Oldest first.
std::vector<VoterSet> needed_voter_sets(const std::vector<Vote>& votes) {
  std::optional<VoterSet> committed;
  for (const Vote& vote : votes) {
    const auto& voter_set = vote.voters.committed;
    if (voter_set && (!committed || voter_set->generation > committed->generation)) committed = voter_set;
  }
  std::vector<VoterSet> needed;
  if (committed) needed.push_back(*committed);
  for (const Vote& vote : votes) {
    const auto& voter_set = vote.voters.prepared;
    const auto same = [&](const VoterSet& each) { return voter_set && each.generation == voter_set->generation; };
    const bool old = !voter_set || (committed && voter_set->generation <= committed->generation);
    if (!old && std::ranges::none_of(needed, same)) needed.push_back(*voter_set);
  }
  std::ranges::sort(needed, {}, &VoterSet::generation);
  return needed;
}

struct Tally {
  bool enough = false;  // given the tie-breakers
  std::vector<Generation> needed_tiebreakers;
};

Tally count_votes(const std::vector<Vote>& votes) {
  Tally tally{.enough = true, .needed_tiebreakers = {}};
  for (const VoterSet& voter_set : needed_voter_sets(votes)) {
    const auto consents = [&](const Vote& vote) { return vote.granted && holds(voter_set, vote.voter); };
    const auto part = static_cast<std::size_t>(std::ranges::count_if(votes, consents));
    const Quorum quorum = quorum_of(part, voter_set.voters.size());
    if (quorum == Quorum::none) tally.enough = false;
    if (quorum == Quorum::half) tally.needed_tiebreakers.push_back(voter_set.generation + 1);
  }
  return tally;
}

struct ElectionContext {
  Election& state;
  std::vector<ElectAction>& actions;
  const Time now;

  void add(ElectAction action) { actions.push_back(std::move(action)); }
  bool hears() const { return hears_leader(state, now); }

  // Events.

  void operator()(const Tick&) {
    look_around();
    // A connection that stays silent for so long may exist on this side only.
    if (state.connected && now - state.heard >= 2 * state.times.silence) hang_up();
    dial();
    if (hears()) return;
    if (now - state.heard >= state.times.silence + state.times.patience) return add(GiveUp{});
    continue_ballot();
    begin_ballot();
  }

  void operator()(const Followed& followed) {
    state.dialling = false;
    if (followed.leader.term < state.voted_term) return hang_up();
    state.connected = true;
    state.leader = followed.leader;
    state.voted_term = std::max(state.voted_term, followed.leader.term);
    state.highest = std::max(state.highest, followed.leader.term);
    state.heard = now;
    state.ballot.reset();
    state.awaited_tiebreakers.clear();
    state.starting.reset();
  }

  void operator()(const LeaderHeard&) {
    if (!state.connected) return;
    state.heard = now;
    if (state.ballot && state.ballot->pre_vote) state.ballot.reset();
  }

  void operator()(const LeaderGone&) {
    state.connected = false;
    state.next_dial = now;
  }

  void operator()(const DialFailed&) {
    state.dialling = false;
    state.next_dial = now + state.times.retry;
  }

  void operator()(const LeaderFound& found) {
    state.highest = std::max(state.highest, found.leader.term);
    // A known coordinator is known by the address at which this agent reached it.
    const bool newer = !state.leader || found.leader.term > state.leader->term;
    if (found.leader.term < state.voted_term || !newer) return;
    if (state.connected) hang_up();
    state.leader = found.leader;
    state.next_dial = now;
  }

  void operator()(const VoterNotice& notice) { learn(state.voters, notice); }

  void operator()(const VoteRequest& asked) {
    const bool newer = asked.term > state.voted_term && (!state.leader || asked.term > state.leader->term);
    const bool grant = newer && !hears() && !state.starting;
    if (grant && !asked.pre_vote) {
      grant_vote(asked.term);
      state.ballot.reset();
      state.next_ballot = std::max(state.next_ballot, now + state.times.start);
    }
    state.highest = std::max(state.highest, asked.pre_vote ? Term{0} : asked.term);
    add(Answer{own_vote(grant)});
  }

  void operator()(const VoteReceived& received) {
    state.highest = std::max(state.highest, received.vote.term);
    if (received.vote.leader) (*this)(LeaderFound{*received.vote.leader});
    auto& ballot = state.ballot;
    if (!ballot || ballot->term != received.term || ballot->pre_vote != received.pre_vote ||
        !state.awaited_tiebreakers.empty())
      return;
    const auto same = [&](const Vote& vote) { return vote.voter.is(received.vote.voter); };
    if (std::ranges::none_of(ballot->votes, same)) ballot->votes.push_back(received.vote);
    continue_ballot();
  }

  void operator()(const TiebreakerAnswered& answered) {
    const bool awaited = std::erase(state.awaited_tiebreakers, answered.generation) > 0;
    if (answered.won) state.tiebreakers.push_back(answered.generation);
    if (!awaited) return;
    if (!answered.won) {
      add(Note{fmt::format("another part of the job holds the tie-breaker of generation {}", answered.generation)});
      return give_up_ballot();
    }
    if (state.awaited_tiebreakers.empty() && state.ballot) begin_vote();
  }

  void operator()(const CoordinatorRuns& runs) {
    if (!state.starting) return;
    state.starting.reset();
    state.leader = runs.leader;
    state.dialling = false;
    add(Announce{runs.leader, others()});
    state.next_ballot = now + state.times.start;  // the agents need time to connect
    state.next_dial = now;
    dial();
  }

  // What prevents a coordinator here, such as a folder that is mounted read-only, may last. So each other voter comes
  // first, `start` after it has voted.
  void operator()(const CoordinatorFailed&) {
    state.starting.reset();
    const auto turns = std::min(std::ssize(others()), kLastStagger);
    state.next_ballot = now + (turns + 1) * state.times.start;
  }

 private:
  void look_around() {
    if (now < state.next_look) return;
    state.next_look = now + (hears() ? state.times.glance : state.times.retry);
    add(LookAround{});
  }

  // Dials the newest known coordinator, unless its term is too old.
  void dial() {
    if (state.connected || state.dialling || now < state.next_dial) return;
    if (!state.leader || state.leader->term < state.voted_term) return;
    state.dialling = true;
    state.next_dial = now + state.times.retry;
    add(Dial{*state.leader});
  }

  void hang_up() {
    state.connected = false;
    add(HangUp{std::max(state.voted_term, state.highest)});
  }

  void grant_vote(Term term) {
    state.voted_term = term;
    state.highest = std::max(state.highest, term);
    if (state.connected) hang_up();
  }

  Vote own_vote(bool granted) const {
    return {.voter = state.self,
            .granted = granted,
            .term = state.highest,
            .leader = hears() && state.connected ? state.leader : std::nullopt,
            .voters = state.voters};
  }

  std::vector<Voter> others() const {
    std::vector<Voter> agents = all_voters(state.voters);
    std::erase_if(agents, [&](const Voter& agent) { return agent.is(state.self); });
    return agents;
  }

  void begin_ballot() {
    if (state.ballot || now < state.next_ballot) return;
    if (state.starting && now - *state.starting < state.times.start) return;
    state.starting.reset();
    const std::optional<Duration> delay = own_delay();
    if (delay && now >= state.heard + state.times.silence + *delay) request_votes(state.highest + 1, true);
  }

  // Delay before this agent starts a ballot: each voter waits a little longer than the one before it; nullopt: no
  // voter.
  std::optional<Duration> own_delay() const {
    std::vector<Voter> all = all_voters(state.voters);
    std::ranges::stable_partition(all, [&](const Voter& agent) {
      return !state.leader || agent.address.address != state.leader->address.address;
    });
    const auto self = std::ranges::find_if(all, [&](const Voter& agent) { return agent.is(state.self); });
    if (self == all.end()) return std::nullopt;
    return state.times.stagger * std::min(self - all.begin(), kLastStagger);
  }

  void request_votes(Term term, bool pre_vote) {
    state.ballot = Election::Ballot{.term = term, .pre_vote = pre_vote, .since = now, .asked = others()};
    state.ballot->votes.push_back(own_vote(true));
    if (!state.ballot->asked.empty()) add(RequestVotes{term, pre_vote, state.ballot->asked});
    continue_ballot();
  }

  void continue_ballot() {
    if (!state.ballot) return;
    const Election::Ballot& ballot = *state.ballot;
    const bool late = now - ballot.since >= state.times.answer;
    if (!state.awaited_tiebreakers.empty() && now - ballot.since >= 2 * state.times.answer) return give_up_ballot();
    if (!state.awaited_tiebreakers.empty()) return;
    const Tally tally = count_votes(ballot.votes);
    const bool over = late || ballot.votes.size() > ballot.asked.size();
    // A tie-breaker is held for ever, so it is requested only when no majority is in sight. Once it is held, half of
    // the votes is enough, and the agents that are lost are not waited for a second time.
    const bool decided = ballot.pre_vote ? tally.needed_tiebreakers.empty() || now - ballot.since >= state.times.half
                                         : holds_all(tally.needed_tiebreakers);
    if (tally.enough && (decided || over)) return ballot.pre_vote ? pre_vote_won(tally) : elected(tally);
    if (over) give_up_ballot();
  }

  void give_up_ballot() {
    state.ballot.reset();
    state.awaited_tiebreakers.clear();
    state.next_ballot = now + state.times.retry + own_delay().value_or(Duration{});
  }

  bool is_held(Generation generation) const {
    return std::ranges::find(state.tiebreakers, generation) != state.tiebreakers.end();
  }

  bool holds_all(const std::vector<Generation>& tiebreakers) const {
    return std::ranges::all_of(tiebreakers, [this](Generation generation) { return is_held(generation); });
  }

  // Continues after a successful pre-vote.
  void pre_vote_won(const Tally& tally) {
    for (const Generation generation : tally.needed_tiebreakers) {
      if (is_held(generation)) continue;
      state.awaited_tiebreakers.push_back(generation);
      add(AcquireTiebreaker{generation});
    }
    if (state.awaited_tiebreakers.empty()) begin_vote();
  }

  void begin_vote() {
    const Term term = std::max(state.ballot->term, state.highest + 1);
    grant_vote(term);
    request_votes(term, false);
  }

  std::vector<std::string> granting_hosts() const {
    std::vector<std::string> hosts;
    for (const Vote& vote : state.ballot->votes) {
      if (vote.granted) hosts.push_back(vote.voter.host);
    }
    return hosts;
  }

  void elected(const Tally& tally) {
    if (!holds_all(tally.needed_tiebreakers)) return give_up_ballot();
    const Term term = state.ballot->term;
    add(Note{fmt::format("{} of {} agents voted for a new coordinator, of term {}: it is started here",
                         std::ranges::count_if(state.ballot->votes, &Vote::granted), state.ballot->asked.size() + 1,
                         term)});
    add(StartCoordinator{{term, needed_voter_sets(state.ballot->votes), state.tiebreakers, granting_hosts()}});
    state.ballot.reset();
    state.starting = now;
  }
};

}  // namespace

bool hears_leader(const Election& state, Time now) { return now - state.heard < state.times.silence; }

ElectDecision elect(Election state, const ElectEvent& event, Time now) {
  ElectDecision decision{std::move(state), {}};
  ElectionContext context{decision.state, decision.actions, now};
  std::visit(context, event);
  return decision;
}

}  // namespace dtrain::elastic
