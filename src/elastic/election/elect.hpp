// Which coordinator an agent follows, and how the agents choose a new one. Pure, like decide(): what happened and when
// -> what to do. The agent feeds it and carries out its actions.
//
// Rules worth knowing:
// - An agent hears its coordinator a few times a second. Silent for so long that it must count as lost, it is looked
//   for: at its old address, in the job folder, and with the other agents of the circle.
// - An agent of the circle that finds none asks for promises: first whether the others would give them (so that one
//   which alone is cut off disturbs nobody), then for good. Earlier members ask first.
// - Nobody promises while it hears a coordinator, nor twice for a term. Who promised refuses all older coordinators.
// - More than half of every circle that may be the current one must promise: of the last committed generation, and of
//   those that were being prepared after it. Exactly half is enough for whoever claims the next generation's number
//   in the job folder.
// - So at any time at most one coordinator can get what it needs to commit a generation: the same shares of the same
//   circles (decide/quorum.cpp).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <dtrain/elastic/circle.hpp>
#include <dtrain/elastic/decide.hpp>

namespace dtrain::elastic {

struct ElectionTimes {
  Duration silence{3'000};     // of a coordinator that counts as lost
  Duration stagger{300};       // between the first questions of one agent of the circle and the next
  Duration answer{1'000};      // to a question
  Duration retry{500};         // between attempts of any kind
  Duration glance{2'000};      // between looks into the folder while a coordinator is heard
  Duration start{5'000};       // of a coordinator, from the promises to its first sign of life
  Duration patience{600'000};  // without a coordinator; then the agent ends
};

// What an agent answers when it is asked for a promise.
struct Vote {
  CircleAgent voter;
  bool granted = false;
  Term term = 0;                 // the highest that it knows
  std::optional<Leader> leader;  // whom it hears
  Circles circles;
};

struct Election {
  ElectionTimes times{};
  CircleAgent self{};
  Circles circles{};
  Term promised = 0;               // nobody below it is obeyed
  Term highest = 0;                // that was ever heard of
  std::optional<Leader> leader{};  // newest that is known
  bool connected = false;          // to it
  bool dialling = false;
  Time heard{};  // of the one that was followed last
  Time next_dial{}, next_look{}, next_question{};

  // A question to the circle that is under way.
  struct Question {
    Term term = 0;
    bool trial = true;  // would you?
    Time since{};
    std::vector<CircleAgent> asked{};
    std::vector<Vote> votes{};  // the own one too
  };
  std::optional<Question> question{};
  std::vector<Generation> to_claim{};  // asked for, before the question is asked for good
  std::vector<Generation> claimed{};   // are this agent's for ever
  std::optional<Time> starting{};      // a coordinator, since
};

// What happened.
struct Followed {  // connected to a coordinator, which welcomed this agent
  Leader leader;
};
struct LeaderHeard {};  // any frame of it
struct LeaderGone {};   // the connection to it is closed
struct DialFailed {};   // the coordinator of the last Dial did not answer, or does not want this agent
struct LeaderFound {    // in the folder, or told by a peer
  Leader leader;
};
struct PromiseAsked {
  Term term = 0;
  bool trial = false;
};
struct VoteCame {
  Term term = 0;
  bool trial = false;
  Vote vote;
};
struct CoordinatorRuns {  // the one that StartCoordinator started
  Leader leader;
};
struct CoordinatorFailed {};
using ElectEvent = std::variant<Tick, Followed, LeaderHeard, LeaderGone, DialFailed, LeaderFound, CircleNotice,
                                PromiseAsked, VoteCame, ClaimAnswered, CoordinatorRuns, CoordinatorFailed>;

// What to do.
struct Dial {
  Leader leader;
};
struct LookAround {  // in the job folder
};
struct AskPromises {
  Term term = 0;
  bool trial = false;
  std::vector<CircleAgent> whom;
};
struct Answer {  // the question that is being fed
  Vote vote;
};
struct HangUp {  // the connection to a coordinator that must not be obeyed any more; it is told why
  Term term = 0;
};
struct StartCoordinator {
  Mandate mandate;
};
struct Announce {  // where the new coordinator is
  Leader leader;
  std::vector<CircleAgent> whom;
};
struct Despair {  // nobody came for too long: the agent ends
};
struct Note {  // for people
  std::string text;
};
using ElectAction =
    std::variant<Dial, LookAround, AskPromises, Answer, HangUp, ClaimNext, StartCoordinator, Announce, Despair, Note>;

struct ElectDecision {
  Election state;
  std::vector<ElectAction> actions;
};
ElectDecision elect(Election state, const ElectEvent& event, Time now);

Json to_json(const Vote& vote);
Vote vote_from_json(const Json& json);  // throws DataError

// The coordinator was heard so lately that no other may come.
bool hears_leader(const Election& state, Time now);

}  // namespace dtrain::elastic
