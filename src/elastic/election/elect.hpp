// The election of a coordinator by the agents, as in Raft: which coordinator an agent follows, and how agents elect a
// new one. A pure function like decide(): state, event and time -> new state and actions. Follower feeds it.
//
// Rules worth knowing:
// - An agent hears its coordinator a few times a second. When the coordinator is silent for so long that it counts as
//   lost, the agent looks for a coordinator at the old address, in the job folder, and at the other voters.
// - A voter that finds none starts a ballot: first a pre-vote, in which the others only say whether they would vote for
//   it (so that an agent that alone is cut off disturbs none), then the vote. Voters of lower rank start earlier; those
//   on the machine of the lost coordinator, which may be lost with it, start last.
// - An agent grants no vote while it hears a coordinator, and one vote in a term. After a vote it refuses all older
//   coordinators.
// - The winner needs more than half of every voter set that may be the current one: of the last committed generation,
//   and of those that were prepared after it. Exactly half is enough with the tie-breaker of the next generation.
// - A coordinator needs the same quorums to commit a generation (decide/quorum.cpp), so at most one coordinator can
//   commit at any time.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <dtrain/elastic/voters.hpp>

#include "decide/decide.hpp"

namespace dtrain::elastic {

struct ElectionTimes {
  Duration silence{3'000};     // silence after which a coordinator counts as lost
  Duration stagger{300};       // between the first ballots of one voter and the next
  Duration answer{1'000};      // time for the answers to a ballot
  Duration half{500};          // time for a majority of a pre-vote, after which exactly half takes the tie-breaker
  Duration retry{500};         // between attempts of any kind
  Duration glance{2'000};      // between looks into the job folder while a coordinator is heard
  Duration start{5'000};       // from a vote to the first sign of life of the new coordinator
  Duration patience{600'000};  // without a coordinator; then the agent ends
};

// An agent's answer to a vote request.
struct Vote {
  Voter voter;
  bool granted = false;
  Term term = 0;                 // the highest that the agent knows
  std::optional<Leader> leader;  // the coordinator that the agent hears
  KnownVoters voters;
};

struct Election {
  ElectionTimes times{};
  Voter self{};
  KnownVoters voters{};
  Term voted_term = 0;             // coordinators of lower terms are refused
  Term highest = 0;                // the highest known term
  std::optional<Leader> leader{};  // the newest known coordinator
  bool connected = false;          // to `leader`
  bool dialling = false;
  Time heard{};  // last frame of a coordinator
  Time next_dial{}, next_look{}, next_ballot{};

  // A ballot of this agent in progress.
  struct Ballot {
    Term term = 0;
    bool pre_vote = true;  // true: would you vote? false: vote
    Time since{};
    std::vector<Voter> asked{};
    std::vector<Vote> votes{};  // this agent's own vote included
  };
  std::optional<Ballot> ballot{};
  std::vector<Generation> awaited_tiebreakers{};  // requested before the vote
  std::vector<Generation> tiebreakers{};          // held by this agent for ever
  std::optional<Time> starting{};                 // since when a coordinator is being started
};

// Events.
struct Followed {  // a coordinator welcomed this agent
  Leader leader;
};
struct LeaderHeard {};  // any frame of the coordinator
struct LeaderGone {};   // the connection to the coordinator is closed
struct DialFailed {};   // the coordinator of the last Dial did not answer or refused this agent
struct LeaderFound {    // in the job folder, or named by a peer
  Leader leader;
};
struct VoteRequest {
  Term term = 0;
  bool pre_vote = false;
};
struct VoteReceived {
  Term term = 0;
  bool pre_vote = false;
  Vote vote;
};
struct CoordinatorRuns {  // the process of StartCoordinator runs
  Leader leader;
};
struct CoordinatorFailed {};
using ElectEvent = std::variant<Tick, Followed, LeaderHeard, LeaderGone, DialFailed, LeaderFound, VoterNotice,
                                VoteRequest, VoteReceived, TiebreakerAnswered, CoordinatorRuns, CoordinatorFailed>;

// Actions.
struct Dial {
  Leader leader;
};
struct LookAround {  // into the job folder
};
struct RequestVotes {
  Term term = 0;
  bool pre_vote = false;
  std::vector<Voter> whom;
};
struct Answer {  // to the vote request that was fed
  Vote vote;
};
struct HangUp {  // close the connection to an outdated coordinator and report the higher term
  Term term = 0;
};
struct StartCoordinator {
  ElectionResult election;
};
struct Announce {  // report to the voters where the new coordinator is
  Leader leader;
  std::vector<Voter> whom;
};
struct GiveUp {  // no coordinator was found for too long: the agent ends
};
struct Note {  // for the user
  std::string text;
};
using ElectAction = std::variant<Dial, LookAround, RequestVotes, Answer, HangUp, AcquireTiebreaker, StartCoordinator,
                                 Announce, GiveUp, Note>;

struct [[nodiscard]] ElectDecision {
  Election state;
  std::vector<ElectAction> actions;
};
ElectDecision elect(Election state, const ElectEvent& event, Time now);

Json to_json(const Vote& vote);
Vote vote_from_json(const Json& json);  // throws DataError

// The coordinator was heard so lately that no other may be elected.
[[nodiscard]] bool hears_leader(const Election& state, Time now);

}  // namespace dtrain::elastic
