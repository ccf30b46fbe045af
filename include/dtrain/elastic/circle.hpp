// Who may choose a new coordinator when the old one is lost: the circle of a generation, the agents of its members. The
// rules are in src/README.md, "No machine that must survive"; elect() and decide() keep them.
#pragma once

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

// Numbers the coordinators of a job, one after the other; 0: none yet. Whoever meets a higher one follows it.
using Term = std::uint64_t;

struct CircleAgent {
  std::string host;
  std::string tree;           // AgentJoin::tree: an agent that is started again is another one
  comm::PeerAddress address;  // where other agents reach it
  bool is(const CircleAgent& other) const { return host == other.host && tree == other.tree; }
  friend bool operator==(const CircleAgent&, const CircleAgent&) = default;
};

struct Circle {
  Generation generation = 0;
  std::vector<CircleAgent> agents;  // in the order of their first member
  std::vector<Member> members;      // by rank
  friend bool operator==(const Circle&, const Circle&) = default;
};

// What an agent knows: the newest generation that was committed, and a newer one that may have been by now.
struct Circles {
  std::optional<Circle> committed;
  std::optional<Circle> prepared;
  friend bool operator==(const Circles&, const Circles&) = default;
};
// A coordinator's word about a generation that begins.
struct CircleNotice {
  bool committed = false;
  Circle circle;
};
void learn(Circles& circles, const CircleNotice& notice);

// A coordinator that may be followed.
struct Leader {
  Term term = 0;
  comm::PeerAddress address;
};

// What it takes to lead: the process that becomes the coordinator gets it.
struct Mandate {
  Term term = 0;
  std::vector<Circle> circles;      // oldest first: the committed one, then those that may have been since
  std::vector<Generation> claimed;  // numbers that were claimed for it
};

// What an agent that lost its coordinator tells the next one: its workers, and the last message of each kind that
// says what such a worker is (Hello, Ready, Progress), oldest first.
struct WorkerReport {
  WorkerId worker = 0;
  int slot = 0;
  std::vector<FromWorker> said;
};
struct HostReport {
  std::string host;
  std::string address;  // numeric, as the coordinator sees it
  Circles circles;
  std::vector<WorkerReport> workers;
};

// How much of a circle is on one's side. Exactly half may act too if it claims what comes next before the others do.
enum class Share { minority, half, majority };
Share share_of(std::size_t part, std::size_t whole);

Json to_json(const CircleAgent& agent);
Json to_json(const Circle& circle);
Json to_json(const Circles& circles);
Json to_json(const CircleNotice& notice);
// Throw DataError.
CircleAgent circle_agent_from_json(const Json& json);
Circle circle_from_json(const Json& json);
Circles circles_from_json(const Json& json);
CircleNotice circle_notice_from_json(const Json& json);
Json to_json(const Leader& leader);
Leader leader_from_json(const Json& json);
Json to_json(const Mandate& mandate);
Mandate mandate_from_json(const Json& json);
Json to_json(const std::vector<WorkerReport>& workers);
std::vector<WorkerReport> worker_reports_from_json(const Json& json);

// Takes the right to go on after a generation, for a side that has exactly half of its circle: makes
// `folder`/gen/`next` by link(2), which only one process can, on NFS too. True when it is the owner's, also from
// before. Throws Error when the folder cannot be used.
bool claim_generation(const Path& folder, Generation next, const std::string& owner);

}  // namespace dtrain::elastic
