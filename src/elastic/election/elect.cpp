#include "elect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dtrain::elastic {
namespace {

constexpr std::ptrdiff_t kLastStagger = 10;

bool holds(const Circle& circle, const CircleAgent& agent) {
  return std::ranges::any_of(circle.agents, [&](const CircleAgent& each) { return each.is(agent); });
}

// All agents of both circles once, the committed one's first.
std::vector<CircleAgent> electors(const Circles& circles) {
  std::vector<CircleAgent> all;
  for (const auto* circle : {&circles.committed, &circles.prepared}) {
    if (!*circle) continue;
    for (const CircleAgent& agent : (*circle)->agents) {
      if (std::ranges::none_of(all, [&](const CircleAgent& each) { return each.is(agent); })) all.push_back(agent);
    }
  }
  return all;
}

// The circles whose consent is needed: the newest that was committed, and all that may have been since. Oldest first.
std::vector<Circle> circles_needed(const std::vector<Vote>& votes) {
  std::optional<Circle> committed;
  for (const Vote& vote : votes) {
    const auto& circle = vote.circles.committed;
    if (circle && (!committed || circle->generation > committed->generation)) committed = circle;
  }
  std::vector<Circle> needed;
  if (committed) needed.push_back(*committed);
  for (const Vote& vote : votes) {
    const auto& circle = vote.circles.prepared;
    const auto same = [&](const Circle& each) { return circle && each.generation == circle->generation; };
    const bool old = !circle || (committed && circle->generation <= committed->generation);
    if (!old && std::ranges::none_of(needed, same)) needed.push_back(*circle);
  }
  std::ranges::sort(needed, {}, &Circle::generation);
  return needed;
}

struct Verdict {
  bool enough = false;  // given the claims
  std::vector<Generation> to_claim;
};

Verdict judge(const std::vector<Vote>& votes) {
  Verdict verdict{.enough = true, .to_claim = {}};
  for (const Circle& circle : circles_needed(votes)) {
    const auto consents = [&](const Vote& vote) { return vote.granted && holds(circle, vote.voter); };
    const auto part = static_cast<std::size_t>(std::ranges::count_if(votes, consents));
    const Share share = share_of(part, circle.agents.size());
    if (share == Share::minority) verdict.enough = false;
    if (share == Share::half) verdict.to_claim.push_back(circle.generation + 1);
  }
  return verdict;
}

struct Round {
  Election& state;
  std::vector<ElectAction>& actions;
  const Time now;

  void add(ElectAction action) { actions.push_back(std::move(action)); }
  bool hears() const { return hears_leader(state, now); }

  // What happened.

  void operator()(const Tick&) {
    look_around();
    // A connection that says nothing for so long may be one that only this side still has.
    if (state.connected && now - state.heard >= 2 * state.times.silence) hang_up();
    dial();
    if (hears()) return;
    if (now - state.heard >= state.times.silence + state.times.patience) return add(Despair{});
    continue_question();
    begin_question();
  }

  void operator()(const Followed& followed) {
    state.dialling = false;
    if (followed.leader.term < state.promised) return hang_up();
    state.connected = true;
    state.leader = followed.leader;
    state.promised = std::max(state.promised, followed.leader.term);
    state.highest = std::max(state.highest, followed.leader.term);
    state.heard = now;
    state.question.reset();
    state.to_claim.clear();
    state.starting.reset();
  }

  void operator()(const LeaderHeard&) {
    if (!state.connected) return;
    state.heard = now;
    if (state.question && state.question->trial) state.question.reset();
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
    // A coordinator that is known already is known by the address that led to it.
    const bool newer = !state.leader || found.leader.term > state.leader->term;
    if (found.leader.term < state.promised || !newer) return;
    if (state.connected) hang_up();
    state.leader = found.leader;
    state.next_dial = now;
  }

  void operator()(const CircleNotice& notice) { learn(state.circles, notice); }

  void operator()(const PromiseAsked& asked) {
    const bool newer = asked.term > state.promised && (!state.leader || asked.term > state.leader->term);
    const bool grant = newer && !hears() && !state.starting;
    if (grant && !asked.trial) {
      promise(asked.term);
      state.question.reset();
      state.next_question = now + state.times.start;
    }
    state.highest = std::max(state.highest, asked.trial ? Term{0} : asked.term);
    add(Answer{own_vote(grant)});
  }

  void operator()(const VoteCame& came) {
    state.highest = std::max(state.highest, came.vote.term);
    if (came.vote.leader) (*this)(LeaderFound{*came.vote.leader});
    auto& question = state.question;
    if (!question || question->term != came.term || question->trial != came.trial || !state.to_claim.empty()) return;
    const auto same = [&](const Vote& vote) { return vote.voter.is(came.vote.voter); };
    if (std::ranges::none_of(question->votes, same)) question->votes.push_back(came.vote);
    continue_question();
  }

  void operator()(const ClaimAnswered& answered) {
    const bool awaited = std::erase(state.to_claim, answered.generation) > 0;
    if (answered.won) state.claimed.push_back(answered.generation);
    if (!awaited) return;
    if (!answered.won) {
      add(Note{fmt::format("another side of the job has claimed generation {}", answered.generation)});
      return give_question_up();
    }
    if (state.to_claim.empty() && state.question) ask_for_good();
  }

  void operator()(const CoordinatorRuns& runs) {
    if (!state.starting) return;
    state.starting.reset();
    state.leader = runs.leader;
    state.dialling = false;
    add(Announce{runs.leader, others()});
    state.next_dial = now;
    dial();
  }

  void operator()(const CoordinatorFailed&) {
    state.starting.reset();
    state.next_question = now + state.times.retry;
  }

 private:
  void look_around() {
    if (now < state.next_look) return;
    state.next_look = now + (hears() ? state.times.glance : state.times.retry);
    add(LookAround{});
  }

  // The newest coordinator that is known, unless it must not be obeyed.
  void dial() {
    if (state.connected || state.dialling || now < state.next_dial) return;
    if (!state.leader || state.leader->term < state.promised) return;
    state.dialling = true;
    state.next_dial = now + state.times.retry;
    add(Dial{*state.leader});
  }

  void hang_up() {
    state.connected = false;
    add(HangUp{std::max(state.promised, state.highest)});
  }

  void promise(Term term) {
    state.promised = term;
    state.highest = std::max(state.highest, term);
    if (state.connected) hang_up();
  }

  Vote own_vote(bool granted) const {
    return {.voter = state.self,
            .granted = granted,
            .term = state.highest,
            .leader = hears() && state.connected ? state.leader : std::nullopt,
            .circles = state.circles};
  }

  std::vector<CircleAgent> others() const {
    std::vector<CircleAgent> agents = electors(state.circles);
    std::erase_if(agents, [&](const CircleAgent& agent) { return agent.is(state.self); });
    return agents;
  }

  void begin_question() {
    if (state.question || now < state.next_question) return;
    if (state.starting && now - *state.starting < state.times.start) return;
    state.starting.reset();
    const std::optional<Duration> turn = own_turn();
    if (turn && now >= state.heard + state.times.silence + *turn) ask(state.highest + 1, true);
  }

  // Each asks a little later than the one before it, so that they do not ask all at once; nullopt: it has no say.
  std::optional<Duration> own_turn() const {
    const std::vector<CircleAgent> all = electors(state.circles);
    const auto self = std::ranges::find_if(all, [&](const CircleAgent& agent) { return agent.is(state.self); });
    if (self == all.end()) return std::nullopt;
    return state.times.stagger * std::min(self - all.begin(), kLastStagger);
  }

  void ask(Term term, bool trial) {
    state.question = Election::Question{.term = term, .trial = trial, .since = now, .asked = others()};
    state.question->votes.push_back(own_vote(true));
    if (!state.question->asked.empty()) add(AskPromises{term, trial, state.question->asked});
    continue_question();
  }

  void continue_question() {
    if (!state.question) return;
    const Election::Question& question = *state.question;
    const bool late = now - question.since >= state.times.answer;
    if (!state.to_claim.empty() && now - question.since >= 2 * state.times.answer) return give_question_up();
    if (!state.to_claim.empty()) return;
    const Verdict verdict = judge(question.votes);
    const bool over = late || question.votes.size() > question.asked.size();
    // A claim is for ever: only once it is certain that there is no majority.
    if (verdict.enough && (verdict.to_claim.empty() || over)) return question.trial ? go_on(verdict) : win(verdict);
    if (over) give_question_up();
  }

  void give_question_up() {
    state.question.reset();
    state.to_claim.clear();
    state.next_question = now + state.times.retry + own_turn().value_or(Duration{});
  }

  // The trial went well.
  void go_on(const Verdict& verdict) {
    for (const Generation generation : verdict.to_claim) {
      if (std::ranges::find(state.claimed, generation) != state.claimed.end()) continue;
      state.to_claim.push_back(generation);
      add(ClaimNext{generation});
    }
    if (state.to_claim.empty()) ask_for_good();
  }

  void ask_for_good() {
    const Term term = std::max(state.question->term, state.highest + 1);
    promise(term);
    ask(term, false);
  }

  void win(const Verdict& verdict) {
    const auto is_claimed = [&](Generation generation) {
      return std::ranges::find(state.claimed, generation) != state.claimed.end();
    };
    if (!std::ranges::all_of(verdict.to_claim, is_claimed)) return give_question_up();
    const Term term = state.question->term;
    add(Note{fmt::format("{} of {} agents want a new coordinator, the {}th: it is started here",
                         std::ranges::count_if(state.question->votes, &Vote::granted), state.question->asked.size() + 1,
                         term)});
    add(StartCoordinator{{term, circles_needed(state.question->votes), state.claimed}});
    state.question.reset();
    state.starting = now;
  }
};

}  // namespace

bool hears_leader(const Election& state, Time now) { return now - state.heard < state.times.silence; }

ElectDecision elect(Election state, const ElectEvent& event, Time now) {
  ElectDecision decision{std::move(state), {}};
  Round round{decision.state, decision.actions, now};
  std::visit(round, event);
  return decision;
}

}  // namespace dtrain::elastic
