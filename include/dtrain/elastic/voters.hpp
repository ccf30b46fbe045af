// The agents that may elect a new coordinator when the old one is lost: the voters of a generation are the agents of
// its members. src/docs/takeover.md explains the rules; elect() and decide() keep them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/comm/mesh.hpp>
#include <dtrain/elastic/protocol.hpp>

namespace dtrain::elastic {

// Numbers the coordinators of a job in sequence; 0: none yet. Agents follow the highest term that they know.
using Term = std::uint64_t;

struct Voter {
  std::string host;
  std::string tree;           // AgentOrder::tree: differs for each start of the agent
  comm::PeerAddress address;  // where other agents reach it
  bool is(const Voter& other) const { return host == other.host && tree == other.tree; }
  friend bool operator==(const Voter&, const Voter&) = default;
};

struct VoterSet {
  Generation generation = 0;
  std::vector<Voter> voters;    // in the order of their first member
  std::vector<Member> members;  // by rank
  friend bool operator==(const VoterSet&, const VoterSet&) = default;
};

// The voter sets that an agent knows: of the newest committed generation, and of a newer prepared one that may have
// been committed since (joint configuration in Raft).
struct KnownVoters {
  std::optional<VoterSet> committed;
  std::optional<VoterSet> prepared;
  friend bool operator==(const KnownVoters&, const KnownVoters&) = default;
};
// The coordinator announces the voters of a generation that is prepared or committed.
struct VoterNotice {
  bool committed = false;
  VoterSet voter_set;
};
void learn(KnownVoters& voters, const VoterNotice& notice);

// A coordinator that agents may follow.
struct Leader {
  Term term = 0;
  comm::PeerAddress address;
};

// The result of an election, given to the process that becomes the coordinator.
struct ElectionResult {
  Term term = 0;
  std::vector<VoterSet> voter_sets;  // oldest first: the committed one, then those that may have been committed since
  std::vector<Generation> tiebreakers;  // generations for which the winner holds the tie-breaker
  std::vector<std::string> granted_by;  // hosts whose agents granted their vote, so they are alive
};

// A worker, as its agent reports it to the next coordinator: the last Hello, Ready and Progress of the worker, oldest
// first.
struct WorkerReport {
  WorkerId worker = 0;
  int slot = 0;
  std::chrono::milliseconds silence{};  // since the worker's last message
  std::vector<FromWorker> said;
};
struct HostReport {
  std::string host;
  std::string address;  // numeric, as the coordinator sees it
  KnownVoters voters;
  std::vector<WorkerReport> workers;
};

// What a coordinator that takes over starts from: its election, and the agents that came with their workers.
struct TakeoverState {
  ElectionResult election;
  std::vector<HostReport> hosts;
};

// Quorum test. Exactly half of the voters may act too if they hold the tie-breaker of the next generation.
enum class Quorum { none, half, majority };
Quorum quorum_of(std::size_t part, std::size_t whole);

Json to_json(const Voter& agent);
Json to_json(const VoterSet& voter_set);
Json to_json(const KnownVoters& voters);
Json to_json(const VoterNotice& notice);
// These throw DataError.
Voter voter_from_json(const Json& json);
VoterSet voter_set_from_json(const Json& json);
KnownVoters known_voters_from_json(const Json& json);
VoterNotice voter_notice_from_json(const Json& json);
Json to_json(const Leader& leader);
Leader leader_from_json(const Json& json);
Json to_json(const ElectionResult& election);
ElectionResult election_result_from_json(const Json& json);
// A slot of a host, as another process names it. Throws DataError if it is not in the range of slots.
int slot_of(std::int64_t number);
Json to_json(const std::vector<WorkerReport>& workers);
std::vector<WorkerReport> worker_reports_from_json(const Json& json);

// The tie-breaker for a side with exactly half of the voters: makes `folder`/gen/`next` by link(2), which succeeds for
// one process only, on NFS too. True when `owner` has it, also from an earlier call. Throws Error when the folder
// cannot be used.
[[nodiscard]] bool acquire_tiebreaker(const Path& folder, Generation next, const std::string& owner);

}  // namespace dtrain::elastic
